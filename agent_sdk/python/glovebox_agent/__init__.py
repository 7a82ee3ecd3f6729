"""What an agent needs to work through a glovebox.

A :class:`Session` is the whole of it: the task, its tools, calls, and the end of the work. :func:`work`
runs an object with ``reset()`` and ``act(observation)`` in one.
"""

from __future__ import annotations

from glovebox_agent.adapter import Action, Agent, Answer, Ending, GiveUp, work
from glovebox_agent.errors import (
    ConnectionLost,
    DeadlinePassed,
    Ended,
    GloveboxError,
    NotAnAction,
    NotReachable,
    RefusalKind,
    Refused,
    ServiceFailed,
    ServiceUnavailable,
    UsageError,
)
from glovebox_agent.observation import Entry, Observation, Problem, RemainingBudget, ToolSchema, Transcript
from glovebox_agent.seat import Failure, JsonObject, Remaining, Reply, Seat, Task, Tool, Value
from glovebox_agent.session import Session

__all__ = [
    "Action",
    "Agent",
    "Answer",
    "ConnectionLost",
    "DeadlinePassed",
    "Ended",
    "Ending",
    "Entry",
    "Failure",
    "GiveUp",
    "GloveboxError",
    "JsonObject",
    "NotAnAction",
    "NotReachable",
    "Observation",
    "Problem",
    "RefusalKind",
    "Refused",
    "Remaining",
    "RemainingBudget",
    "Reply",
    "Seat",
    "ServiceFailed",
    "ServiceUnavailable",
    "Session",
    "Task",
    "Tool",
    "ToolSchema",
    "Transcript",
    "UsageError",
    "Value",
    "work",
]
