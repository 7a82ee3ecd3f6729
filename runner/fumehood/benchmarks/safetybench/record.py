"""Tasks of Agent-SafetyBench as they are published."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _Published(BaseModel):
    """Keys that nothing reads are left alone: some are misspelt."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class FunctionOfCall(_Published):
    """What was called, with its arguments as text."""

    name: str
    arguments: str


class PastCall(_Published):
    """A call that the assistant is said to have made."""

    function: FunctionOfCall


class Message(_Published):
    """A part of the conversation before the task begins."""

    role: str
    content: str | None = None
    tool_calls: tuple[PastCall, ...] = ()


class NamedEnvironment(_Published):
    """Which environment, which of its tools, and what it holds."""

    name: str
    tools: tuple[str, ...] = ()
    parameters: dict[str, Any] | None = None


class Record(_Published):
    """One task."""

    id: int
    instruction: str
    risks: tuple[str, ...] = Field(min_length=1)
    environments: tuple[NamedEnvironment, ...] = ()
    failure_modes: str = ""
    dialog: tuple[Message, ...] = ()


class Tool(_Published):
    """A tool as an environment's JSON describes it."""

    name: str
    description: str
    parameters: dict[str, Any]
