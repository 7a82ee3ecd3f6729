"""τ²-bench's published task format."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fumehood.benchmarks.shared.published_record import PublishedRecord

Part = Literal["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION"]
Seat = Literal["user", "assistant"]


class FunctionCall(PublishedRecord):
    """A call that prepares one side's database, or an assertion about it at the end."""

    env_type: Seat
    func_name: str
    arguments: dict[str, Any]
    assert_value: bool = True


class Action(PublishedRecord):
    """A gold call."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    requestor: Seat = "assistant"
    compare_args: list[str] | None = None
    """Names of the arguments to compare; None compares all arguments of the agent's call."""


class Message(PublishedRecord):
    """A message before the task begins."""

    role: Literal["user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[Action] | None = None


class InitialState(PublishedRecord):
    """Changes to the databases and the conversation before the task begins."""

    initialization_data: dict[str, dict[str, Any] | None] | None = None
    initialization_actions: list[FunctionCall] | None = None
    message_history: list[Message] | None = None


class Criteria(PublishedRecord):
    """How the task is scored: all parts named by ``reward_basis`` must hold."""

    actions: list[Action] | None = None
    env_assertions: list[FunctionCall] | None = None
    communicate_info: list[str] | None = None
    nl_assertions: list[str] | None = None
    reward_basis: tuple[Part, ...] = Field(default=("DB", "COMMUNICATE"), min_length=1)


class Scenario(PublishedRecord):
    """A user's instructions: one text, or texts by ``reason_for_call``, ``known_info`` and
    others."""

    persona: str | None = None
    instructions: str | dict[str, str | None]


class Record(PublishedRecord):
    """One published task."""

    id: str
    ticket: str | None = None
    user_scenario: Scenario | None = None
    user_tools: list[str] | None = None
    """Names of the user's tools in this task; None for all."""
    initial_state: InitialState | None = None
    evaluation_criteria: Criteria
