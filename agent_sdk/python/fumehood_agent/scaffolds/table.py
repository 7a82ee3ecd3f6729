"""The registry of agents that use a model. Each is one file."""

from __future__ import annotations

from collections.abc import Mapping

SCAFFOLDS: Mapping[str, str] = {
    "code": "fumehood_agent.scaffolds.code:Code",
    "plan_act": "fumehood_agent.scaffolds.plan_act:PlanAct",
    "react": "fumehood_agent.scaffolds.react:React",
    "react_text": "fumehood_agent.scaffolds.react_text:ReactText",
    "single_shot": "fumehood_agent.scaffolds.single_shot:SingleShot",
}
"""Name → ``"module:Class"``, constructed with a ``ChatModel``."""

PLAYERS: Mapping[str, str] = {
    "simulated_user": "fumehood_agent.scaffolds.simulated_user:SimulatedUser"
}
"""Agents that use a model to simulate another participant."""

LEADERS: Mapping[str, str] = {"lead": "fumehood_agent.scaffolds.lead:Lead"}
"""Agents that give orders to other seats, constructed with the names of these seats, too."""

TOOL_CALLING = frozenset({"lead", "plan_act", "react", "simulated_user", "single_shot"})
"""Agents that use the tool calling of the API."""

WITH_MODEL: Mapping[str, str] = {**SCAFFOLDS, **PLAYERS, **LEADERS}
"""All agents that use a model."""
