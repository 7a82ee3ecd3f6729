"""WebShop, a part of AgentBench."""
