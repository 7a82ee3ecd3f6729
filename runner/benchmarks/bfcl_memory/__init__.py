"""The memory categories of BFCL: conversations with something to remember, and questions about it."""
