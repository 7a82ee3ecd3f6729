"""An agent cannot void its attempt by the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
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


def test_a_result_that_cannot_be_written_is_a_failed_call() -> None:
    layer = ContainCrashes(lambda: Fresh(works))
    assert isinstance(layer.around(CALL, lambda call: Value({"product": 10**5_000})), Failure)


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
