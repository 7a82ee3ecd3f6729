"""AgentBench's lateral thinking puzzles."""
