"""ToolMisuseBench; see README.md and docs/reference/toolmisuse.md."""
