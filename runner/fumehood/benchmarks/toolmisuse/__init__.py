"""ToolMisuseBench: its published record format and its tasks."""
