"""AgentBench's dbbench: questions about a table, and changes to it, in SQL."""
