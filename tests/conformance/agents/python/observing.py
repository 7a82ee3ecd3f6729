"""Converts replies to observations, which the README of the protocol cases describes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fumehood_agent import Ended, Failure, Refused, Remaining, Reply, Task

Step = dict[str, Any]
Observation = dict[str, Any]


def of_task(task: Task, left: Remaining) -> Observation:
    """Return the observation of the task and of the remaining budget."""
    counted = {kind: units for kind, units in left.items() if kind != "wall_ms"}
    return {"turn": task.turn, "tools": [tool.name for tool in task.tools], "remaining": counted}


def of_reply(reply: Reply, measure: str | None) -> Observation:
    """Return the observation of an answer; a text that ``measure`` names is replaced by its
    length."""
    ended = {"ended": True} if reply.ended else {}
    if isinstance(reply.result, Failure):
        return {"failure": asdict(reply.result)} | ended
    if measure is not None:
        return {"bytes": len(reply.result.output[measure].encode())} | ended
    return {"value": reply.result.output} | ended


def of_refusal(refused: Refused) -> Observation:
    """Return the observation of a refusal."""
    if isinstance(refused, Ended):
        return {"refusal": "ended"}
    numbers = {"limit": refused.limit, "actual": refused.actual} if refused.limit else {}
    return {"refusal": refused.kind.name.lower(), **numbers}
