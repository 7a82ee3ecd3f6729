"""AgentBench's card game."""
