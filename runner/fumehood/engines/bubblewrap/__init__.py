"""The bubblewrap engine: agents in Linux namespaces."""
