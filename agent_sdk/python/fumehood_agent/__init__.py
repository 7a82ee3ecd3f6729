"""The agent SDK of Fumehood.

A :class:`Session` gives an agent its task and its tools, and ends its work. :func:`work` runs an
object with ``reset()`` and ``act(observation)``.
"""

from __future__ import annotations

from fumehood_agent import _lean_grpc as _lean_grpc  # Before any other import of gRPC
from fumehood_agent.adapter import Action, Agent, Answer, Ending, GiveUp, work
from fumehood_agent.errors import (
    ConnectionLost,
    DeadlinePassed,
    Ended,
    FumehoodError,
    NotAnAction,
    NotReachable,
    RefusalKind,
    Refused,
    ServiceFailed,
    ServiceUnavailable,
    UsageError,
)
from fumehood_agent.observation import (
    Entry,
    Observation,
    Problem,
    RemainingBudget,
    ToolSchema,
    Transcript,
)
from fumehood_agent.seat import Failure, JsonObject, Remaining, Reply, Seat, Task, Tool, Value
from fumehood_agent.session import Session

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
    "FumehoodError",
    "GiveUp",
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
