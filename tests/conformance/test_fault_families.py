"""What every fault family promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.dice import NamedDice
from runner.core.fault_plan import FaultRule
from runner.core.json_values import Json, canonical_json
from runner.core.tools import Failure, FailureKind, Layer, ToolCall, ToolResult, Value
from runner.faults.table import FAMILIES
from runner.faults.trigger import Armed, Trigger

NAMES = list(FAMILIES)
RULE = 3
EARLIER = FaultRule(1, "an inner one").event()

calls = st.builds(
    ToolCall,
    st.sampled_from(["read_file", "write_file"]),
    st.dictionaries(st.sampled_from(["path", "content", "token"]), st.text(max_size=5) | st.integers()),
    st.integers(1, 20),
)
results: st.SearchStrategy[ToolResult] = st.builds(
    Value, st.dictionaries(st.text(max_size=3), st.integers()), st.sampled_from([(), (EARLIER,)])
) | st.builds(
    Failure,
    st.sampled_from([FailureKind.WORLD, FailureKind.INVALID_CALL]),
    st.sampled_from(["not_found", "missing_required_arg"]),
    st.just("No."),
    st.just({"tool_name": "read_file"}),
    st.sampled_from([(), (EARLIER,)]),
)


class Inside:
    """What stands behind the fault; notes what comes through."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        self.calls: list[ToolCall] = []

    def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        return self.result


def _fault(family: str, trigger: dict[str, Json], seed: int = 7) -> Layer:
    rule = FaultRule(RULE, family, trigger, "hard", {})
    return FAMILIES.load(family)(Armed(rule, Trigger.of(rule), NamedDice(seed)))


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("trigger", [{"on_tool": "another"}, {"on_nth_call": 99}, {"prob": 0.0}], ids=str)
@given(call=calls, result=results)
def test_a_fault_that_does_not_strike_is_not_there(
    family: str, trigger: dict[str, Json], call: ToolCall, result: ToolResult
) -> None:
    inside = Inside(result)
    assert _fault(family, trigger).around(call, inside.call) is result
    assert inside.calls == [call]


@pytest.mark.parametrize("family", NAMES)
@given(call=calls, result=results)
def test_a_call_goes_in_at_most_once_and_is_left_as_it_was(
    family: str, call: ToolCall, result: ToolResult
) -> None:
    inside, before = Inside(result), canonical_json(dict(call.arguments))
    _fault(family, {}).around(call, inside.call)
    assert len(inside.calls) <= 1
    assert canonical_json(dict(call.arguments)) == before
    assert [(one.tool_name, one.number) for one in inside.calls] in ([], [(call.tool_name, call.number)])


@pytest.mark.parametrize("family", NAMES)
@given(call=calls, result=results)
def test_a_strike_is_told_once_and_inner_strikes_are_kept(
    family: str, call: ToolCall, result: ToolResult
) -> None:
    inside = Inside(result)
    shown = _fault(family, {}).around(call, inside.call)
    own = [event for event in shown.story if event.rule == RULE]
    others = tuple(event for event in shown.story if event.rule != RULE)
    assert len(own) <= 1
    assert all((event.family, event.severity) == (family, "hard") for event in own)
    assert others == (result.story if inside.calls else ())
    if not own:
        assert shown is result


@pytest.mark.parametrize("family", NAMES)
@given(call=calls, result=results, seed=st.integers())
def test_the_same_chance_strikes_the_same(family: str, call: ToolCall, result: ToolResult, seed: int) -> None:
    one, other = (_fault(family, {"prob": 0.5}, seed).around(call, Inside(result).call) for _ in range(2))
    assert one == other
