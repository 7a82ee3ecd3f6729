"""An agent cannot void its attempt by the arguments of a call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.event_forms import DEPTH_MAX, OUTER_LEVELS, parse_event
from fumehood.core.json_values import Json, canonical_json
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.core.trace import CallMade
from fumehood.layers.contain_crashes import ContainCrashes

CALL = ToolCall("multiply", {"a": 1}, 1)


class Fresh:
    """A toolset in the state that the task gave it."""

    def __init__(self, answer: Callable[[], ToolResult]) -> None:
        self._answer = answer

    def list_tools(self) -> tuple[ToolSpec, ...]:
        return ()

    def call(self, call: ToolCall) -> ToolResult:
        return self._answer()


def raising(error: Exception) -> Callable[..., ToolResult]:
    def answer(*_: object) -> ToolResult:
        raise error

    return answer


def works(*_: object) -> ToolResult:
    return Value({})


@pytest.mark.parametrize("error", [ZeroDivisionError(), RecursionError(), MemoryError()])
def test_an_exception_of_the_world_is_a_failed_call_without_details(error: Exception) -> None:
    layer = ContainCrashes(lambda: Fresh(works))
    result = layer.around(CALL, raising(error))
    assert result == Failure(FailureKind.WORLD, "internal_error", "The tool failed on this call.")


def nested(levels: int) -> Json:
    """Return lists within each other."""
    value: Json = None
    for _ in range(levels):
        value = [value]
    return value


UNRECORDABLE: dict[str, Any] = {
    "a number of too many digits": 10**5_000,
    "not a number": [{"mean": math.nan}],
    "infinity": -math.inf,
    "more levels than an event may have": nested(DEPTH_MAX),
    "keys of two types": {1: "a", "b": "c"},
}


@pytest.mark.parametrize("output", UNRECORDABLE.values(), ids=UNRECORDABLE)
def test_a_result_that_the_trace_cannot_contain_is_a_failed_call(output: Any) -> None:
    layer = ContainCrashes(lambda: Fresh(works))
    assert isinstance(layer.around(CALL, lambda call: Value({"result": output})), Failure)


@pytest.mark.parametrize("output", ["NaN", nested(DEPTH_MAX - OUTER_LEVELS - 1), ["[" * 1000]])
def test_a_result_that_the_trace_can_contain_is_returned(output: Json) -> None:
    layer = ContainCrashes(lambda: Fresh(works))
    result = Value({"result": output})
    assert layer.around(CALL, lambda call: result) == result
    event = CallMade("agent", CALL, result, "").to_json()
    assert parse_event(canonical_json(event)) == event


def test_a_state_that_the_task_broke_stays_a_failure_of_the_task() -> None:
    broken = raising(SpecError("initial_state.jobs[0]", "must be an object"))
    with pytest.raises(SpecError):
        ContainCrashes(lambda: Fresh(broken)).around(CALL, broken)


def test_a_state_that_earlier_calls_broke_is_a_failed_call() -> None:
    broken = raising(SpecError("initial_state.jobs", "names must be text"))
    assert isinstance(ContainCrashes(lambda: Fresh(works)).around(CALL, broken), Failure)


def test_a_server_that_failed_is_not_contained() -> None:
    with pytest.raises(InfraError):
        ContainCrashes(lambda: Fresh(works)).around(CALL, raising(InfraError("MariaDB has ended")))
