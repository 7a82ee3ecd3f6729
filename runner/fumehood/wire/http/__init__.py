"""A seat's second socket: the same port over HTTP, as Connect's JSON and as MCP."""
