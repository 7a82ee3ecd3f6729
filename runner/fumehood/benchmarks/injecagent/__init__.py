"""InjecAgent: instructions of an attacker in the result of a tool, from a checkout."""
