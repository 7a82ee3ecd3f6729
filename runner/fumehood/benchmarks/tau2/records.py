"""τ²-bench's published task format."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Part = Literal["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION"]
Seat = Literal["user", "assistant"]


class _Published(BaseModel):
    # Keys that nothing reads are left alone.
    model_config = ConfigDict(extra="ignore", frozen=True)


class FunctionCall(_Published):
    """What happens to one side before the task begins, or has to be true, or not, of it in the end."""

    env_type: Seat
    func_name: str
    arguments: dict[str, Any]
    assert_value: bool = True


class Action(_Published):
    """A call of the gold."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    requestor: Seat = "assistant"
    compare_args: list[str] | None = None
    """Which arguments have to be those; None for all that a call has."""


class Message(_Published):
    """Something from before the task begins."""

    role: Literal["user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[Action] | None = None


class InitialState(_Published):
    """How it stands before the task begins, besides the databases."""

    initialization_data: dict[str, dict[str, Any] | None] | None = None
    initialization_actions: list[FunctionCall] | None = None
    message_history: list[Message] | None = None


class Criteria(_Published):
    """By what it is judged: all parts that ``reward_basis`` names have to hold."""

    actions: list[Action] | None = None
    env_assertions: list[FunctionCall] | None = None
    communicate_info: list[str] | None = None
    nl_assertions: list[str] | None = None
    reward_basis: tuple[Part, ...] = Field(default=("DB", "COMMUNICATE"), min_length=1)


class Scenario(_Published):
    """What a user is told, in one text or by ``reason_for_call``, ``known_info`` and others."""

    persona: str | None = None
    instructions: str | dict[str, str | None]


class Record(_Published):
    """One task."""

    id: str
    ticket: str | None = None
    user_scenario: Scenario | None = None
    user_tools: list[str] | None = None
    """Those of the user's tools that there are; None for all."""
    initial_state: InitialState | None = None
    evaluation_criteria: Criteria
