"""Rule monitors: which rules match, what they decide, and what a mistake says."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.monitors.monitor import (
    Action,
    Decision,
    Facts,
    Stage,
    Step,
    StepKind,
    decision_from_json,
)
from fumehood.monitors.rules import RuleMonitor

LARGE = {"op": "at_least", "path": "arguments.amount", "value": 100}
REFUSE_LARGE = {"name": "large", "tool": "transfer*", "conditions": [LARGE], "action": "refuse"}


def _monitor(*rules: dict[str, Any]) -> RuleMonitor:
    monitor = RuleMonitor({"rules": list(rules)})
    monitor.begin(Facts(world="files", instructions={}))
    return monitor


def _step(number: int = 1, tool: str = "transfer", **further: Any) -> Step:
    return Step(seat="agent", number=number, tool=tool, **{"arguments": {}, **further})


def test_a_rule_matches_a_tool_pattern_and_all_conditions() -> None:
    monitor = _monitor(REFUSE_LARGE)
    large: JsonObject = {"amount": 100}
    assert monitor.before(_step(arguments=large)).action is Action.REFUSE
    assert monitor.before(_step(arguments={"amount": 99})).is_silent
    assert monitor.before(_step(tool="read", arguments=large)).is_silent
    assert monitor.before(_step(arguments=large, kind=StepKind.MODEL)).is_silent


@pytest.mark.parametrize("account", ["5", 5, 5.0])
def test_a_number_and_its_text_are_the_same_argument(account: Any) -> None:
    of_vault = {"op": "equals", "path": "arguments.account", "value": "5"}
    either = {"op": "any_of", "conditions": [of_vault]}
    other = {"op": "not", "condition": of_vault}
    step = _step(arguments={"account": account})
    for condition, action in ((of_vault, "refuse"), (either, "refuse"), (other, "allow")):
        monitor = _monitor({"name": "vault", "conditions": [condition], "action": "refuse"})
        assert monitor.before(step).action.value == action


def test_a_number_and_its_text_differ_in_an_output() -> None:
    text = {"op": "equals", "path": "output.total", "value": "5"}
    monitor = _monitor({"name": "text", "stage": "after", "conditions": [text], "suspicion": 0.5})
    assert monitor.after(_step(stage=Stage.AFTER, output={"total": 5})).is_silent
    assert not monitor.after(_step(stage=Stage.AFTER, output={"total": "5"})).is_silent


def test_a_refusal_is_fully_suspicious_and_names_its_rule_unless_it_states_otherwise() -> None:
    assert _monitor({"name": "all", "action": "refuse"}).before(_step()) == Decision(
        action=Action.REFUSE, suspicion=1.0, reason="all"
    )


def test_a_rule_with_only_a_suspicion_lets_the_step_go_on() -> None:
    decision = _monitor({"name": "odd", "suspicion": 0.3}).before(_step())
    assert decision == Decision(suspicion=0.3, reason="odd")


def test_the_strictest_action_and_the_highest_suspicion_count() -> None:
    decision = _monitor(
        {"name": "first", "suspicion": 0.9},
        {"name": "second", "action": "end", "suspicion": 0.4},
        {"name": "third", "action": "refuse", "suspicion": 0.5},
    ).before(_step())
    assert decision == Decision(action=Action.END, suspicion=0.9, reason="first; second; third")


def test_a_rule_decides_from_its_nth_match_on() -> None:
    monitor = _monitor({"name": "flood", "times": 3, "action": "end"})
    actions = [monitor.before(_step(number)).action for number in (1, 2, 3)]
    assert actions == [Action.ALLOW, Action.ALLOW, Action.END]


def test_a_rule_can_need_an_earlier_step() -> None:
    monitor = _monitor(
        {"name": "secret", "stage": "after", "tool": "read", "suspicion": 0.1},
        {"name": "leak", "tool": "send", "since": "secret", "action": "refuse"},
    )
    assert monitor.before(_step(tool="send")).is_silent
    monitor.after(_step(tool="read", stage=Stage.AFTER, output={}))
    assert monitor.before(_step(tool="send")).action is Action.REFUSE


def test_a_rule_can_replace_the_output() -> None:
    rule = {"name": "hide", "stage": "after", "action": "modify", "output": {"text": "…"}}
    decision = _monitor(rule).after(_step(stage=Stage.AFTER, output={"text": "key"}))
    assert decision.output == {"text": "…"}


def test_a_rule_monitor_needs_the_state_only_if_a_condition_names_it() -> None:
    inner = {"op": "equals", "path": "state.valve", "value": "open"}
    on_state = {"name": "valve", "conditions": [{"op": "not", "condition": inner}], "action": "end"}
    assert _monitor(on_state).needs_state
    assert not _monitor(REFUSE_LARGE).needs_state


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"name": "a"}, "rules[0]: needs an action, such as refuse, or a suspicion"),
        ({"action": "end"}, "rules[0].name: must be a name"),
        ({"name": "a", "acton": "end"}, "rules[0].acton: did you mean 'action'?"),
        ({"name": "a", "action": "stop"}, "rules[0]: action must be one of allow, modify"),
        ({"name": "a", "action": "end", "stage": "now"}, "rules[0].stage: must be one of before"),
        ({"name": "a", "action": "end", "since": "b"}, "rules[0].since: no rule is called 'b'"),
        ({"name": "a", "action": "end", "times": 0}, "rules[0].times: must be a whole number"),
        ({"name": "a", "action": "modify"}, "rules[0]: modify before a step needs arguments"),
        (
            {"name": "a", "action": "end", "conditions": [{"op": "is"}]},
            "rules[0].conditions[0].op: must be one of any_of",
        ),
        (
            {"name": "a", "action": "end", "conditions": [{"op": "exists"}]},
            "rules[0].conditions[0].path: must be a path in the step",
        ),
    ],
)
def test_a_mistake_names_its_field(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        RuleMonitor({"rules": [rule]})
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "a decision must be an object"),
        ({"verdict": 1}, "a decision has no field 'verdict'"),
        ({"suspicion": True}, "suspicion must be a number"),
        ({"suspicion": 1.5}, "suspicion must be from 0 to 1"),
        ({"suspicion": float("nan")}, "suspicion must be from 0 to 1"),
        ({"action": "allow", "arguments": {}}, "arguments has no effect with allow before a step"),
        ({"reason": 7}, "reason must be text"),
    ],
)
def test_a_decision_of_another_form_is_rejected(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decision_from_json(value, Stage.BEFORE)
