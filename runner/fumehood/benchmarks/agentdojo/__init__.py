"""AgentDojo: tasks with tools whose answers may hold an attack."""
