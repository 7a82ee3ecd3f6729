"""Makes ToolMisuseBench suites: same format, same rules, our own words."""
