"""Seats beside the agent's, and how all of them talk: part of a native record."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from fumehood.benchmarks.native.strict import Strict
from fumehood.core.errors import InputError
from fumehood.turn_policies.registry import BY_WORLD, TURN_POLICIES


class BudgetRecord(Strict):
    """What an agent may spend: inclusive upper bounds."""

    steps: int = Field(ge=1)
    calls: int = Field(ge=1)
    retries: int = Field(ge=0)
    """Failed calls that are tolerated; one more ends the work."""
    wall_ms: Annotated[int, Field(ge=1)] | None = None
    """None leaves it to the run."""
    answer_bytes: Annotated[int, Field(ge=1)] | None = None
    """Of all answers together, as compact JSON in UTF-8; None means no bound."""


class Move(Strict):
    """One move of an oracle or a script: a call, or the end of a turn or of the work."""

    seat: str | None = None
    """Whose move it is; the agent's where it is not said."""
    tool_name: str | None = None
    args: dict[str, Any] | None = None
    submit: str | None = None
    give_up: str | None = None

    @model_validator(mode="after")
    def _is_one_move(self) -> Move:
        if self.model_fields_set - {"seat"} not in ({"tool_name", "args"}, {"submit"}, {"give_up"}):
            raise ValueError("is no move: give tool_name and args, or submit, or give_up")
        return self


class SeatRecord(Strict):
    """A participant beside the agent."""

    name: str = Field(pattern=r"^[a-z0-9_]{1,32}$")
    instruction: str = Field(min_length=1)
    budget: BudgetRecord
    tools: list[str] | None = None
    """Tools of the world that this seat has; None for all."""
    player: str | None = None
    """The agent that sits there unless a run says otherwise; the tested agent where it is not said."""
    script: list[Move] | None = None
    """What the player ``script`` does."""

    @model_validator(mode="after")
    def _script_has_a_player(self) -> SeatRecord:
        if (self.player == "script") != (self.script is not None):
            raise ValueError("script: goes with the player script, and only with it")
        return self


class ConversationRecord(Strict):
    """Who speaks next."""

    rule: str
    """Name of a built-in or installed turn policy; ``world`` where the world decides."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """In the terms of the turn policy."""

    @field_validator("rule")
    @classmethod
    def _is_known(cls, rule: str) -> str:
        try:
            if rule != BY_WORLD:
                TURN_POLICIES.load(rule)
        except InputError as error:
            raise ValueError(str(error)) from None
        return rule
