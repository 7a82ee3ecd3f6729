"""AgentBench's knowledge graph."""
