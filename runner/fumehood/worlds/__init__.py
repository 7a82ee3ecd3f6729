"""General simulators. They do not know budgets, faults, traces or agents."""
