"""Checks and templates for agents in any language. See ``docs/agent_conformance.md``."""
