"""Tasks of τ²-bench as they are published, of which not every key counts when the agent works alone."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Published(BaseModel):
    """Keys that nothing reads are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class FunctionCall(_Published):
    """Something that happens to one side before the task begins."""

    env_type: Literal["user", "assistant"]
    func_name: str
    arguments: dict[str, Any]


class Assertion(FunctionCall):
    """What has to hold of one side in the end."""

    assert_value: bool = True


class Action(_Published):
    """A call of the gold."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    compare_args: list[str] | None = None
    """Which arguments have to be those; None for all."""


class InitialState(_Published):
    """How it stands before the task begins, besides the databases."""

    initialization_actions: list[FunctionCall] | None = None


class Criteria(_Published):
    """By what it is judged: all parts that ``reward_basis`` names have to hold."""

    actions: list[Action] | None = None
    env_assertions: list[Assertion] | None = None
    reward_basis: list[Literal["ENV_ASSERTION", "ACTION"]] = Field(min_length=1)


class Record(_Published):
    """One task."""

    id: str
    ticket: str
    initial_state: InitialState | None = None
    evaluation_criteria: Criteria
