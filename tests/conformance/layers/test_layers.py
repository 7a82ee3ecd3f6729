"""What a door can rely on in every layer, and in every fault family of the table."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest

from fumehood.core.json_values import canonical_json
from fumehood.core.tools import Failure, FailureKind, FiredFault, Layer, ToolCall, ToolResult, Value
from fumehood.layers.faults.registry import FAMILIES
from tests.conformance.layers.makers import ACTING, PASSING, PAYLOADS, MakeLayer

CALL = ToolCall("write_file", {"path": "/a", "content": "x"}, 1)
ODD = ToolCall("no_such_tool", {"path": [1], "more": {"deep": [None]}}, 1)

STORY = (
    FiredFault(3, "timeout", "soft", {"p": [1]}),
    FiredFault(4, "authz", "hard", {}, None, "timeout"),
)
RESULTS: tuple[ToolResult, ...] = (
    Value({"a": [1, {"b": 2}]}),
    Value({}, STORY[:1]),
    Failure(FailureKind.WORLD, "not_found", "No.", {"d": [1]}),
    Failure(FailureKind.FAULT, "timeout", "No.", {"timeout_ms": 5}, STORY[:1]),
    Failure(FailureKind.WORLD, "E", "No.", {"d": {}}, STORY),
    Failure(FailureKind.INVALID_CALL, "unknown_argument", "No.", {"unknown": ["x"]}),
)


class Inside:
    """Stands where the world is; answers always the same and notes what reaches it."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        self.seen: list[ToolCall] = []

    def __call__(self, call: ToolCall) -> ToolResult:
        self.seen.append(call)
        return self.result


@pytest.fixture(params=[*PASSING, *ACTING])
def make_layer(request: pytest.FixtureRequest) -> MakeLayer:
    """Every layer, at rest and at work."""
    return {**PASSING, **ACTING}[request.param]


@pytest.fixture(params=RESULTS, ids=lambda result: type(result).__name__)
def result(request: pytest.FixtureRequest) -> ToolResult:
    """What comes from further in."""
    answer: ToolResult = request.param
    return answer


def test_every_family_of_the_table_is_here() -> None:
    assert set(FAMILIES) == set(PAYLOADS)


@pytest.mark.parametrize("name", PASSING)
def test_a_layer_without_business_passes_the_call_and_the_answer_on(name: str) -> None:
    inside = Inside(Value({"a": [1]}))
    assert PASSING[name]().around(CALL, inside) == inside.result
    assert [(call.tool_name, call.arguments) for call in inside.seen] == [
        (CALL.tool_name, CALL.arguments)
    ]


@pytest.mark.parametrize("call", [CALL, ODD], ids=["fitting", "odd"])
def test_it_forwards_at_most_once(
    make_layer: MakeLayer, result: ToolResult, call: ToolCall
) -> None:
    inside = Inside(result)
    make_layer().around(call, inside)
    assert len(inside.seen) <= 1


@pytest.mark.parametrize("call", [CALL, ODD], ids=["fitting", "odd"])
def test_it_changes_neither_the_call_nor_the_answer_in_place(
    make_layer: MakeLayer, result: ToolResult, call: ToolCall
) -> None:
    sent, answered = deepcopy(call), deepcopy(result)
    make_layer().around(call, Inside(result))
    assert (call, result) == (sent, answered)


def test_it_answers_with_what_can_be_written_down(
    make_layer: MakeLayer, result: ToolResult
) -> None:
    for call in (CALL, ODD):
        answer = make_layer().around(call, Inside(result))
        canonical_json(answer.output if isinstance(answer, Value) else dict(answer.details))


def test_it_keeps_the_story_that_comes_from_within(
    make_layer: MakeLayer, result: ToolResult
) -> None:
    inside = Inside(result)
    answer = make_layer().around(CALL, inside)
    if inside.seen:
        assert [event for event in answer.story if event in result.story] == list(result.story)


def test_the_number_of_a_call_is_given_once_and_kept(
    make_layer: MakeLayer, result: ToolResult
) -> None:
    inside = Inside(result)
    make_layer().around(CALL, inside)
    assert [call.number for call in inside.seen] in ([], [CALL.number])


def test_the_same_calls_give_the_same_answers(make_layer: MakeLayer, result: ToolResult) -> None:
    assert story_of(make_layer(), result) == story_of(make_layer(), result)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_delivered_fault_says_which_rule_it_was(family: str) -> None:
    failure = Failure(FailureKind.WORLD, "not_found", "No.")
    story = ACTING[f"loud {family}"]().around(CALL, Inside(failure)).story
    assert [(event.rule, event.family, event.payload) for event in story] == [
        (0, family, PAYLOADS[family])
    ]


def story_of(layer: Layer, result: ToolResult) -> Sequence[ToolResult]:
    return [layer.around(call, Inside(result)) for call in (CALL, ODD, CALL, CALL)]
