"""The docker engine: agents in hardened containers."""
