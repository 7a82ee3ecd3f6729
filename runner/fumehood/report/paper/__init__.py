"""ToolMisuseBench's paper (arXiv 2604.01508) again: its tables and figures, ours beside the published."""
