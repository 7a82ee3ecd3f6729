"""The gateway between agents and model providers: budgets, requests, responses and cassettes."""
