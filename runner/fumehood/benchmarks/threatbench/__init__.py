"""AgentThreatBench: tool results that contain an attack, from the package inspect-evals."""
