"""AgentDojo: tasks whose tool results may contain an attack, from the package agentdojo."""
