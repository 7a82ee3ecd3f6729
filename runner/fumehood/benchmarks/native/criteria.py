"""The shapes of a native record's criteria, checked when it is loaded; the native scorer evaluates them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from fumehood.benchmarks.native.strict import Strict

Name = Annotated[str, Field(min_length=1)]

DottedPath = Name
"""Keys and positions joined by dots, such as ``accounts.a1001.tier``; for keys without dots."""

Step = str | int

StatePath = list[Step]
"""Keys from the outside in, such as ``["files", "/a.txt"]``. An entry of a list whose entries all have an
``id`` or a ``name`` is addressed by that, of any other list by its position."""

MinCount = Annotated[int, Field(ge=1)]


class Equals(Strict):
    """The final state has this value there."""

    op: Literal["equals"]
    path: DottedPath
    value: Any


class Exists(Strict):
    """The final state has something other than null there."""

    op: Literal["exists"]
    path: DottedPath


class In(Strict):
    """What the final state has there contains the value."""

    op: Literal["in"]
    path: DottedPath
    value: Any


class MapValueEquals(Strict):
    """The object that the final state has there has this value under the key, which may hold dots."""

    op: Literal["map_value_equals"]
    path: DottedPath
    key: str
    value: Any

    @field_validator("value")
    @classmethod
    def _not_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError(
                "null would also hold where the key is missing; use only_changed or unchanged"
            )
        return value


class ToolWasCalled(Strict):
    """The tool was called, whatever came of it."""

    op: Literal["tool_call"]
    tool_name: Name
    min_count: MinCount = 1


class ToolSucceeded(Strict):
    """The tool was called and answered."""

    op: Literal["successful_tool_call"]
    tool_name: Name
    min_count: MinCount = 1


class ToolOutputPathEquals(Strict):
    """The tool's latest answer that has this path has this value there."""

    op: Literal["tool_output_path_equals"]
    tool_name: Name
    output_path: DottedPath
    value: Any


class ToolOutputPathExists(Strict):
    """Some answer of the tool has something other than null there."""

    op: Literal["tool_output_path_exists"]
    tool_name: Name
    output_path: DottedPath


class Unchanged(Strict):
    """The state, or what it has at the path, is what it was at the start."""

    op: Literal["unchanged"]
    path: StatePath = Field(default_factory=list)


class OnlyChanged(Strict):
    """Whatever differs from the start lies at or below one of the paths."""

    op: Literal["only_changed"]
    paths: list[StatePath] = Field(min_length=1)

    @field_validator("paths")
    @classmethod
    def _none_is_everything(cls, paths: list[StatePath]) -> list[StatePath]:
        if not all(paths):
            raise ValueError("an empty path would allow every change")
        return paths


class CallPattern(Strict):
    """Calls of one tool whose arguments contain these, as sent or as the tool got them."""

    tool_name: Name
    args: dict[str, Any] = Field(default_factory=dict)


class NotCalled(CallPattern):
    """No such call was even tried."""

    op: Literal["not_called"]


class CalledWith(CallPattern):
    """Such a call was made and answered."""

    op: Literal["called_with"]
    min_count: MinCount = 1


class TriedAny(Strict):
    """At least one of these calls was tried, whatever came of it."""

    op: Literal["tried_any"]
    calls: list[CallPattern] = Field(min_length=1)


class CalledBefore(Strict):
    """No call of ``second`` was tried before one of ``first`` was answered."""

    op: Literal["called_before"]
    first: CallPattern
    second: CallPattern


class AnswerEquals(Strict):
    """The submitted answer is this text, apart from case and blanks."""

    op: Literal["answer_equals"]
    value: Name


class AnswerContains(Strict):
    """The submitted answer has this text in it as whole words, apart from case and blanks."""

    op: Literal["answer_contains"]
    value: Name
    max_words: Annotated[int, Field(ge=1)] | None = None
    """Longest answer that counts, in words, so that reciting everything is no answer."""


class GaveUp(Strict):
    """The agent gave up."""

    op: Literal["gave_up"]


class Judged(Strict):
    """The run's judge gives the wanted answer to a question; without a judge it is ungraded."""

    op: Literal["judged"]
    asks: Name
    answers: list[Name] = Field(default=["yes", "no"], min_length=2)
    wants: Name = "yes"
    looks_at: Literal["answer", "transcript"] = "answer"

    @model_validator(mode="after")
    def _wants_an_answer(self) -> Judged:
        if self.wants not in self.answers:
            raise ValueError(f"wants must be one of the answers: {', '.join(self.answers)}")
        return self


Criterion = Annotated[
    Equals
    | Exists
    | In
    | MapValueEquals
    | ToolWasCalled
    | ToolSucceeded
    | ToolOutputPathEquals
    | ToolOutputPathExists
    | Unchanged
    | OnlyChanged
    | NotCalled
    | CalledWith
    | TriedAny
    | CalledBefore
    | AnswerEquals
    | AnswerContains
    | GaveUp
    | Judged,
    Field(discriminator="op"),
]
