"""AgentBench's os_interaction: questions and changes in a workspace."""
