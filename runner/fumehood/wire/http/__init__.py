"""The HTTP socket of a seat: Connect JSON, plain paths for shells, and MCP."""
