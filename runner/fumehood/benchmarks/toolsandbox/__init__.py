"""ToolSandbox: an agent uses the tools of a phone for a simulated user."""
