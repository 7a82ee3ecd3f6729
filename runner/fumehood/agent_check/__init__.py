"""Agents in any language: the vectors they are held to, the folders they begin from, the checks they pass.

See ``docs/agent_conformance.md``.
"""
