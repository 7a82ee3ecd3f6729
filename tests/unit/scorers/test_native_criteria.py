"""Each operation of the native scorer, true and false."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import SpecError
from fumehood.core.outcome import Finished, GaveUp, SeatEnd
from fumehood.core.tools import FailureKind
from fumehood.scorers.native_criteria import operations
from tests.unit.scorers.exchanges import answered, evidence, failed, holds, judged

REFUSED = FailureKind.WORLD
BEFORE = {"files": {"/a.txt": "x", "/b.txt": "y"}, "note": "n"}


@pytest.mark.parametrize(
    ("criterion", "after", "verdict"),
    [
        ({"op": "equals", "path": "note", "value": "n"}, BEFORE, True),
        ({"op": "equals", "path": "nope", "value": "n"}, BEFORE, False),
        ({"op": "unchanged"}, BEFORE, True),
        ({"op": "unchanged"}, {**BEFORE, "note": "m"}, False),
        ({"op": "unchanged", "path": ["files"]}, {**BEFORE, "note": "m"}, True),
        (
            {"op": "unchanged", "path": ["files", "/a.txt"]},
            {"files": {"/b.txt": "y"}, "note": "n"},
            False,
        ),
        ({"op": "unchanged", "path": ["files", "/c.txt"]}, {**BEFORE, "files": 3}, False),
        ({"op": "only_changed", "paths": [["note"]]}, BEFORE, True),
        ({"op": "only_changed", "paths": [["note"]]}, {**BEFORE, "note": "m"}, True),
        ({"op": "only_changed", "paths": [["files"], ["note"]]}, {"files": {}, "note": "m"}, True),
        ({"op": "only_changed", "paths": [["note"]]}, {"files": {}, "note": "m"}, False),
        ({"op": "only_changed", "paths": [["files", "/a.txt"]]}, {**BEFORE, "more": 1}, False),
    ],
)
def test_criteria_over_the_state(
    criterion: dict[str, Any], after: dict[str, Any], verdict: bool
) -> None:
    assert holds(criterion, evidence(state=after), BEFORE) is verdict


def test_a_call_that_was_tried_counts_as_called() -> None:
    seen = evidence(failed(REFUSED, "rm", path="/a", force=True))
    assert not holds({"op": "not_called", "tool_name": "rm"}, seen)
    assert not holds({"op": "not_called", "tool_name": "rm", "args": {"path": "/a"}}, seen)
    assert holds({"op": "not_called", "tool_name": "rm", "args": {"path": "/b"}}, seen)
    assert holds({"op": "not_called", "tool_name": "ls"}, seen)
    assert holds({"op": "tried_any", "calls": [{"tool_name": "ls"}, {"tool_name": "rm"}]}, seen)
    assert not holds(
        {"op": "tried_any", "calls": [{"tool_name": "rm", "args": {"path": "/b"}}]}, seen
    )


def test_a_call_counts_as_made_when_it_was_answered() -> None:
    wanted = {"op": "called_with", "tool_name": "put", "args": {"path": "/a"}}
    assert not holds(wanted, evidence(failed(REFUSED, "put", path="/a")))
    assert holds(wanted, evidence(answered("put", path="/a", text="x")))
    assert not holds({**wanted, "min_count": 2}, evidence(answered("put", path="/a", text="x")))
    assert not holds(wanted, evidence(answered("put", path="/b")))


def test_arguments_count_as_sent_and_as_delivered() -> None:
    seen = evidence(answered("put", location="/a", arguments_after={"path": "/a"}))
    assert holds({"op": "called_with", "tool_name": "put", "args": {"path": "/a"}}, seen)
    assert holds({"op": "called_with", "tool_name": "put", "args": {"location": "/a"}}, seen)
    assert not holds({"op": "not_called", "tool_name": "put", "args": {"path": "/a"}}, seen)


def test_arguments_are_a_part_at_every_depth_and_strict_about_types() -> None:
    seen = evidence(answered("put", patch={"tier": "gold", "n": 1}))
    assert holds(
        {"op": "called_with", "tool_name": "put", "args": {"patch": {"tier": "gold"}}}, seen
    )
    assert not holds(
        {"op": "called_with", "tool_name": "put", "args": {"patch": {"n": True}}}, seen
    )
    assert not holds(
        {"op": "called_with", "tool_name": "put", "args": {"patch": {"m": None}}}, seen
    )


def test_order_is_kept_when_the_first_was_answered_before_the_second_was_tried() -> None:
    order = {"op": "called_before", "first": {"tool_name": "check"}, "second": {"tool_name": "go"}}
    assert holds(order, evidence(answered("check"), answered("go")))
    assert holds(order, evidence(failed(REFUSED, "check"), answered("check"), answered("go")))
    assert not holds(order, evidence(failed(REFUSED, "check"), answered("go"), answered("check")))
    assert not holds(order, evidence(failed(REFUSED, "go"), answered("check"), answered("go")))
    assert holds(order, evidence())


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("d5107", True), ("  D5107\n", True), ("d5107.", False), ("it is d5107", False), ("", False)],
)
def test_an_answer_is_compared_apart_from_case_and_blanks(answer: str, verdict: bool) -> None:
    assert (
        holds({"op": "answer_equals", "value": "d5107"}, evidence(end=Finished(answer))) is verdict
    )


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("It opens at 12.", True),
        ("12", True),
        ("at 112", False),
        ("at 12.5", False),
        ("it holds 12 to 14 of them or so", False),
    ],
)
def test_an_answer_contains_whole_words(answer: str, verdict: bool) -> None:
    criterion = {"op": "answer_contains", "value": "12", "max_words": 5}
    assert holds(criterion, evidence(end=Finished(answer))) is verdict


@pytest.mark.parametrize("end", [GaveUp("12"), None])
def test_whoever_does_not_answer_has_no_answer(end: SeatEnd | None) -> None:
    assert not holds({"op": "answer_contains", "value": "12"}, evidence(end=end))
    assert not holds({"op": "answer_equals", "value": "12"}, evidence(end=end))


def test_giving_up_can_be_asked_for() -> None:
    assert holds({"op": "gave_up"}, evidence(end=GaveUp()))
    assert not holds({"op": "gave_up"}, evidence())


def test_an_operation_that_is_none_names_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"criteria\[0\].op: .*'equal'; did you mean 'equals'\?"):
        judged({"op": "equal"}, evidence())


def test_every_published_operation_is_there() -> None:
    published = {"equals", "exists", "in", "map_value_equals", "tool_call", "successful_tool_call"}
    assert published | {"tool_output_path_equals", "tool_output_path_exists"} < set(operations())
