"""Agent-SafetyBench: tasks in which an agent may do harm, from a checkout."""
