"""Each operation of the native scorer, in a case where it holds and one where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import SpecError
from fumehood.core.outcome import Finished, GaveUp, SeatEnd
from fumehood.core.tools import FailureKind
from fumehood.scorers.native_criteria import operations
from tests.unit.scorers.answered_calls import answered, evidence, failed, holds, judged

REFUSED = FailureKind.WORLD
BEFORE = {"files": {"/a.txt": "x", "/b.txt": "y"}, "note": "n"}


@pytest.mark.parametrize(
    ("criterion", "after", "expected"),
    [
        ({"op": "equals", "path": "note", "value": "n"}, BEFORE, True),
        ({"op": "equals", "path": "nope", "value": "n"}, BEFORE, False),
        ({"op": "at_least", "path": "files.count", "value": 2}, {"files": {"count": 2}}, True),
        ({"op": "not", "condition": {"op": "exists", "path": "files.a"}}, {"files": {}}, True),
        ({"op": "unchanged"}, BEFORE, True),
        ({"op": "unchanged"}, {**BEFORE, "note": "m"}, False),
        ({"op": "unchanged", "path": ["files"]}, {**BEFORE, "note": "m"}, True),
        (
            {"op": "unchanged", "path": ["files", "/a.txt"]},
            {"files": {"/b.txt": "y"}, "note": "n"},
            False,
        ),
        ({"op": "unchanged", "path": ["files", "/c.txt"]}, {**BEFORE, "files": 3}, False),
        # A path that is not a list selects the whole state.
        ({"op": "unchanged", "path": "files"}, {**BEFORE, "note": "m"}, False),
        ({"op": "only_changed", "paths": [["note"]]}, BEFORE, True),
        ({"op": "only_changed", "paths": [["note"]]}, {**BEFORE, "note": "m"}, True),
        ({"op": "only_changed", "paths": [["files"], ["note"]]}, {"files": {}, "note": "m"}, True),
        ({"op": "only_changed", "paths": [["note"]]}, {"files": {}, "note": "m"}, False),
        ({"op": "only_changed", "paths": [["files", "/a.txt"]]}, {**BEFORE, "more": 1}, False),
    ],
)
def test_criteria_over_the_state(
    criterion: dict[str, Any], after: dict[str, Any], expected: bool
) -> None:
    assert holds(criterion, evidence(state=after), BEFORE) is expected


def test_a_failed_call_counts_as_attempted() -> None:
    given = evidence(failed(REFUSED, "rm", path="/a", force=True))
    assert not holds({"op": "not_called", "tool_name": "rm"}, given)
    assert not holds({"op": "not_called", "tool_name": "rm", "args": {"path": "/a"}}, given)
    assert holds({"op": "not_called", "tool_name": "rm", "args": {"path": "/b"}}, given)
    assert holds({"op": "not_called", "tool_name": "ls"}, given)
    assert holds({"op": "tried_any", "calls": [{"tool_name": "ls"}, {"tool_name": "rm"}]}, given)
    assert not holds(
        {"op": "tried_any", "calls": [{"tool_name": "rm", "args": {"path": "/b"}}]}, given
    )


def test_called_with_counts_successful_calls_only() -> None:
    wanted = {"op": "called_with", "tool_name": "put", "args": {"path": "/a"}}
    assert not holds(wanted, evidence(failed(REFUSED, "put", path="/a")))
    assert holds(wanted, evidence(answered("put", path="/a", text="x")))
    assert not holds({**wanted, "min_count": 2}, evidence(answered("put", path="/a", text="x")))
    assert not holds(wanted, evidence(answered("put", path="/b")))


def test_arguments_match_as_sent_and_as_executed() -> None:
    given = evidence(answered("put", location="/a", arguments_after={"path": "/a"}))
    assert holds({"op": "called_with", "tool_name": "put", "args": {"path": "/a"}}, given)
    assert holds({"op": "called_with", "tool_name": "put", "args": {"location": "/a"}}, given)
    assert not holds({"op": "not_called", "tool_name": "put", "args": {"path": "/a"}}, given)


def test_arguments_match_partially_at_every_depth_and_by_type() -> None:
    given = evidence(answered("put", patch={"tier": "gold", "n": 1}))
    assert holds(
        {"op": "called_with", "tool_name": "put", "args": {"patch": {"tier": "gold"}}}, given
    )
    assert not holds(
        {"op": "called_with", "tool_name": "put", "args": {"patch": {"n": True}}}, given
    )
    assert not holds(
        {"op": "called_with", "tool_name": "put", "args": {"patch": {"m": None}}}, given
    )


@pytest.mark.parametrize("name", [5, "5"])
def test_an_id_as_a_number_or_as_text_is_the_same_call(name: Any) -> None:
    forbidden = {"op": "not_called", "tool_name": "t", "args": {"id": "5"}}
    assert not holds(forbidden, evidence(answered(id=name)))
    assert holds(forbidden, evidence(answered(id=True), answered(id="05")))


def test_called_before_requires_the_first_success_before_the_second_attempt() -> None:
    order = {"op": "called_before", "first": {"tool_name": "check"}, "second": {"tool_name": "go"}}
    assert holds(order, evidence(answered("check"), answered("go")))
    assert holds(order, evidence(failed(REFUSED, "check"), answered("check"), answered("go")))
    assert not holds(order, evidence(failed(REFUSED, "check"), answered("go"), answered("check")))
    assert not holds(order, evidence(failed(REFUSED, "go"), answered("check"), answered("go")))
    assert holds(order, evidence())


@pytest.mark.parametrize("missing", ["first", "second"])
def test_called_before_does_not_hold_without_both_patterns(missing: str) -> None:
    order = {"op": "called_before", "first": {"tool_name": "a"}, "second": {"tool_name": "b"}}
    del order[missing]
    assert not holds(order, evidence(answered("a"), answered("b")))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("d5107", True), ("  D5107\n", True), ("d5107.", False), ("it is d5107", False), ("", False)],
)
def test_answer_equals_ignores_case_and_whitespace(answer: str, expected: bool) -> None:
    assert (
        holds({"op": "answer_equals", "value": "d5107"}, evidence(end=Finished(answer))) is expected
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It opens at 12.", True),
        ("12", True),
        ("at 112", False),
        ("at 12.5", False),
        ("it contains exactly 12 words", True),
        ("it contains 12 words or more", False),
        ("10,11,12,13,14", True),
        ("9,10,11,12,13,14", False),
        ("9\u206010\u206011\u206012\u206013\u206014", False),
        ("9 \u0301 10 \u0301 12", True),
        ("9\u030110\u030111\u030112\u030113\u030114", False),
        ("12 " + "x" * 150, False),
        ("यह बारह हिन्दी में 12", True),
        ("11m\u030312m\u030313m\u030314", False),
        ("12m\u0323", False),
    ],
)
def test_answer_contains_matches_whole_words_within_the_limit(answer: str, expected: bool) -> None:
    criterion = {"op": "answer_contains", "value": "12", "max_words": 5}
    assert holds(criterion, evidence(end=Finished(answer))) is expected


@pytest.mark.parametrize("answer", ["weeks", "week.start"])
def test_an_expected_value_is_neither_in_its_plural_nor_in_a_name(answer: str) -> None:
    criterion = {"op": "answer_contains", "value": "week"}
    assert holds(criterion, evidence(end=Finished("next week")))
    assert not holds(criterion, evidence(end=Finished(answer)))


@pytest.mark.parametrize("value", ["ann.lee@example.org", "x" * 64, "3.5", "o'neil"])
def test_an_expected_value_of_one_word_may_be_the_whole_answer(value: str) -> None:
    criterion = {"op": "answer_contains", "value": value, "max_words": 1}
    assert holds(criterion, evidence(end=Finished(value)))
    assert not holds(criterion, evidence(end=Finished(f"{value},{value}")))


@pytest.mark.parametrize("end", [GaveUp("12"), None])
def test_an_agent_without_an_answer_fails_answer_criteria(end: SeatEnd | None) -> None:
    assert not holds({"op": "answer_contains", "value": "12"}, evidence(end=end))
    assert not holds({"op": "answer_equals", "value": "12"}, evidence(end=end))


def test_gave_up_holds_if_the_agent_gave_up() -> None:
    assert holds({"op": "gave_up"}, evidence(end=GaveUp()))
    assert not holds({"op": "gave_up"}, evidence())


def test_an_unknown_operation_names_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"criteria\[0\].op: .*'equal'; did you mean 'equals'\?"):
        judged({"op": "equal"}, evidence())


def test_the_operations_include_the_published_ones() -> None:
    published = {"equals", "exists", "in", "map_value_equals", "tool_call", "successful_tool_call"}
    assert published | {"tool_output_path_equals", "tool_output_path_exists"} < set(operations())
