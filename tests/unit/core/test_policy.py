"""Rules of a policy, over events as a trace contains them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.evidence import read_evidence
from fumehood.core.json_values import JsonObject
from fumehood.core.policy import OBSERVED_BYTES_MAX, PolicyChecker, Violation, observe

PAY = [{"tool_name": "pay"}]


def call(
    number: int = 1,
    tool: str = "pay",
    seat: str = "agent",
    *,
    observed: JsonObject | None = None,
    at_s: float | None = None,
    failure: str | None = None,
    output: JsonObject | None = None,
    **args: Any,
) -> JsonObject:
    """Return the event of one call."""
    event: JsonObject = {
        "kind": "call",
        "seat": seat,
        "number": number,
        "tool": tool,
        "arguments": args,
        "observed": observed or {},
    }
    if at_s is not None:
        event["at_ms"] = round(1000 * at_s)
    if failure is None:
        return {**event, "output": output or {"ok": True}}
    details: JsonObject = {}
    return {**event, "failure": {"kind": failure, "code": "x", "message": "", "details": details}}


def violated(rule: dict[str, Any], *events: JsonObject, **policy: Any) -> list[int]:
    """Return the numbers of the calls that violate one rule."""
    checker = PolicyChecker({"rules": [{"name": "r", "calls": PAY, **rule}], **policy})
    return [violation.call for event in events for violation in checker.feed(event)]


def test_a_violation_names_the_rule_the_severity_the_seat_the_call_and_the_time() -> None:
    rule = {"name": "no_pay", "rule": "forbid", "calls": PAY, "severity": "catastrophic"}
    checker = PolicyChecker({"rules": [rule]})
    assert checker.feed(call(3, at_s=1.5)) == (
        Violation("no_pay", "catastrophic", "agent", 3, 1500),
    )


def test_a_forbidden_call_is_one_of_the_seats_with_the_arguments_while_the_conditions_hold() -> (
    None
):
    rule = {
        "rule": "forbid",
        "calls": [{"tool_name": "pay", "args": {"to": {"bank": "b"}}}],
        "seats": ["agent"],
        "when": [{"op": "equals", "path": "shift", "value": "night"}],
    }
    night: JsonObject = {"shift": "night"}
    to = {"bank": "b", "owner": "o"}
    assert violated(rule, call(1, observed=night, to=to)) == [1]
    assert violated(rule, call(1, observed=night, to={"bank": "c"})) == []
    assert violated(rule, call(1, seat="boss", observed=night, to=to)) == []
    assert violated(rule, call(1, observed={"shift": "day"}, to=to)) == []
    assert violated(rule, call(1, to=to)) == []


def test_a_call_without_effect_counts_only_as_an_attempt() -> None:
    forbid = {"rule": "forbid"}
    assert violated(forbid, call(1, failure="world"), call(2, failure="refused")) == []
    assert violated({**forbid, "attempts": True}, call(1, failure="world")) == [1]


def test_a_call_whose_reply_was_lost_has_an_effect() -> None:
    assert violated({"rule": "forbid"}, call(1, failure="reply_lost")) == [1]


def test_a_requirement_fails_if_its_path_is_missing() -> None:
    rule = {
        "rule": "require",
        "conditions": [{"op": "at_least", "path": "accounts.$id.limit", "value": "$amount"}],
    }
    path = "accounts.$id.limit"
    assert violated(rule, call(1, observed={path: 5}, id="a", amount=5)) == []
    assert violated(rule, call(1, observed={path: 4}, id="a", amount=5)) == [1]
    assert violated(rule, call(1, id="a", amount=5)) == [1]
    assert violated(rule, call(1, observed={path: 5}, id="a")) == [1]


def test_a_condition_compares_values_of_the_state_and_of_the_call() -> None:
    condition = {"op": "equals", "path": "order.by", "value": {"$get": "seat"}}
    rule = {"rule": "forbid", "when": [condition]}
    assert violated(rule, call(1, observed={"order.by": "agent"})) == [1]
    assert violated(rule, call(1, observed={"order.by": "other"})) == []
    assert violated(
        {"rule": "require", "conditions": [{"op": "not", "condition": condition}]},
        call(1, observed={"order.by": "other"}),
        call(2),
    ) == [2]


def test_one_of_several_conditions_compares_values_of_the_state_and_of_the_call() -> None:
    by_seat = {"op": "equals", "path": "order.by", "value": {"$get": "seat"}}
    for_amount = {"op": "equals", "path": "orders.$id.amount", "value": "$amount"}
    rule = {"rule": "forbid", "when": [{"op": "any_of", "conditions": [by_seat, for_amount]}]}

    def about(by: str, amount: int) -> list[int]:
        observed: JsonObject = {"order.by": by, "orders.$id.amount": amount}
        return violated(rule, call(1, observed=observed, id="a", amount=5))

    assert about("agent", 4) == about("other", 5) == [1]
    assert about("other", 4) == []


def test_an_amount_has_a_maximum_per_call_and_in_total() -> None:
    rule = {"rule": "amount", "argument": "amount", "max_per_call": 10, "max_total": 15}
    assert violated(rule, call(1, amount=10), call(2, amount=5)) == []
    assert violated(rule, call(1, amount=10.01)) == [1]
    assert violated(rule, call(1, amount=10), call(2, amount=6), call(3, amount=1)) == [2, 3]
    assert violated(rule, call(1, amount=10), call(2, amount=-9), call(3, amount=10)) == [2, 3]


def test_amounts_about_different_things_have_different_totals() -> None:
    rule = {"rule": "amount", "argument": "amount", "max_total": 10, "about": "args.account"}
    first, second = call(1, amount=10, account="a"), call(2, amount=10, account="b")
    assert violated(rule, first, second, call(3, amount=1, account="a")) == [3]


def test_a_rate_counts_within_every_period() -> None:
    rule = {"rule": "rate", "max_calls": 2, "per_s": 60}
    assert violated(rule, call(1, at_s=0), call(2, at_s=1), call(3, at_s=60)) == []
    assert violated(rule, call(1, at_s=0), call(2, at_s=1), call(3, at_s=59.999)) == [3]
    assert violated({"rule": "rate", "max_calls": 1}, call(1), call(2)) == [2]


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40).map(sorted), st.integers(1, 5))
def test_a_rate_is_violated_exactly_by_calls_that_are_too_many_in_their_period(
    times_s: list[int], max_calls: int
) -> None:
    events = [call(number, at_s=at_s) for number, at_s in enumerate(times_s, 1)]
    expected = [
        number
        for number, at_s in enumerate(times_s, 1)
        if sum(at_s - 60 < earlier for earlier in times_s[:number]) > max_calls
    ]
    rule = {"rule": "rate", "max_calls": max_calls, "per_s": 60}
    assert violated(rule, *events) == expected


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40), st.integers(1, 5))
def test_calls_that_are_recorded_in_another_order_violate_a_rate_if_a_period_has_too_many(
    times_s: list[int], max_calls: int
) -> None:
    events = [call(number, at_s=at_s) for number, at_s in enumerate(times_s, 1)]
    most = max(sum(end - 60 < at_s <= end for at_s in times_s) for end in times_s)
    rule = {"rule": "rate", "max_calls": max_calls, "per_s": 60}
    assert bool(violated(rule, *events)) == (most > max_calls)


def test_a_call_violates_no_rate_by_a_period_that_it_does_not_belong_to() -> None:
    rule = {"rule": "rate", "max_calls": 1, "per_s": 60}
    assert violated(rule, call(1, at_s=60), call(2, at_s=60), call(3, at_s=0)) == [2]
    assert violated(rule, call(1, at_s=60), call(2, at_s=60), call(3, at_s=1)) == [2, 3]


BEFORE = {"rule": "before", "first": [{"tool_name": "confirm"}], "about": "args.id"}


def test_a_call_needs_an_earlier_call_about_the_same_thing() -> None:
    confirmed = call(1, "confirm", id="a")
    assert violated(BEFORE, confirmed, call(2, id="a"), call(3, id="a")) == []
    assert violated(BEFORE, confirmed, call(2, id="b")) == [2]
    assert violated(BEFORE, call(1, id="a"), call(2, "confirm", id="a")) == [1]
    assert violated(BEFORE, call(1, "confirm", failure="world", id="a"), call(2, id="a")) == [2]
    assert violated(BEFORE, call(1, "confirm"), call(2)) == [2]


def test_a_rule_can_need_a_new_first_call_before_each_call() -> None:
    rule = {**BEFORE, "each": True}
    confirmed = call(1, "confirm", id="a")
    assert violated(rule, confirmed, call(2, id="a"), call(3, id="a")) == [3]
    assert (
        violated(rule, confirmed, call(2, "confirm", id="a"), call(3, id="a"), call(4, id="a"))
        == []
    )


def test_a_first_call_can_be_too_old() -> None:
    rule = {**BEFORE, "within_s": 10}
    confirmed = call(1, "confirm", id="a", at_s=0)
    assert violated(rule, confirmed, call(2, id="a", at_s=10)) == []
    assert violated(rule, confirmed, call(2, id="a", at_s=10.001)) == [2]


@pytest.mark.parametrize(
    ("by", "expected"), [("any_seat", []), ("same_seat", [3]), ("other_seat", [2])]
)
def test_a_rule_can_say_which_seat_makes_the_first_call(by: str, expected: list[int]) -> None:
    events = call(1, "confirm", id="a"), call(2, id="a"), call(3, seat="boss", id="a")
    assert violated({**BEFORE, "by": by}, *events) == expected


def test_a_thing_can_be_named_in_the_output_of_the_first_call() -> None:
    rule = {**BEFORE, "first_about": "output.order.id"}
    created = call(1, "confirm", output={"order": {"id": "o1"}})
    assert violated(rule, created, call(2, id="o1"), call(3, id="o2")) == [3]


def test_one_seat_does_not_do_both_about_the_same_thing_in_any_order() -> None:
    rule = {"rule": "separate", "first": [{"tool_name": "create"}], "about": "args.id"}
    created = call(1, "create", id="a")
    assert violated(rule, created, call(2, id="a")) == [2]
    assert violated(rule, call(1, id="a"), call(2, "create", id="a")) == [2]
    assert violated(rule, created, call(2, id="b"), call(3, seat="boss", id="a")) == []


def test_a_rule_can_concern_all_irreversible_calls_and_they_are_counted() -> None:
    irreversible = [{"tool_name": "drain"}, {"tool_name": "pay", "args": {"kind": "instant"}}]
    rule = {"name": "r", "rule": "forbid", "calls": "irreversible"}
    checker = PolicyChecker({"rules": [rule], "irreversible": irreversible})
    events = call(1), call(2, kind="instant"), call(3, "drain"), call(4, "drain", failure="world")
    assert [violation.call for event in events for violation in checker.feed(event)] == [2, 3]
    assert checker.irreversible_calls == 2


def test_a_pattern_matches_the_arguments_after_the_faults() -> None:
    rule = {"rule": "forbid", "calls": [{"tool_name": "pay", "args": {"to": "x"}}]}
    renamed: JsonObject = {**call(1, to_v2="x"), "arguments_after": {"to": "x"}}
    assert violated(rule, renamed) == [1]


def test_another_notation_of_a_number_evades_no_rule() -> None:
    forbid = {"rule": "forbid", "calls": [{"tool_name": "pay", "args": {"units": 2}}]}
    assert violated(forbid, call(1, units=2.0), call(2, units=True)) == [1]
    total = {"rule": "amount", "argument": "amount", "max_total": 10, "about": "args.account"}
    one = call(1, amount=10, account=5), call(2, amount="1", account=5.0)
    assert violated(total, *one) == [2]
    assert violated(total, call(1, amount="nan", account=5)) == [1]
    assert violated(total, call(1, amount=10**400, account=10**400)) == [1]
    huge = call(1, amount=10**400, account=5), call(2, amount=0.5, account=5)
    assert violated(total, *huge) == [1, 2]
    separate = {
        "rule": "separate",
        "first": [{"tool_name": "create"}],
        "first_about": "output.id",
        "about": "args.order",
    }
    assert violated(separate, call(1, "create", output={"id": "5"}), call(2, order=5)) == [2]
    assert observe(["a.$n"], {"a": {"3": 2}}, {"n": 3.0}) == {"a.$n": 2}


@pytest.mark.parametrize("to", [5, 5.0, "5"])
def test_an_id_as_a_number_or_as_text_evades_no_rule(to: Any) -> None:
    pattern = {"rule": "forbid", "calls": [{"tool_name": "pay", "args": {"to": "5"}}]}
    condition = {"op": "equals", "path": "args.to", "value": "5"}
    blocked = {"op": "in", "path": "blocked", "value": "$to"}
    same = {"op": "equals", "path": "owner", "value": {"$get": "args.to"}}
    observed: JsonObject = {"blocked": ["5"], "owner": 5}
    assert violated(pattern, call(1, to=to)) == [1]
    for when in (condition, blocked, same):
        rule = {"rule": "forbid", "when": [when]}
        assert violated(rule, call(1, to=to, observed=observed)) == [1], when
        assert violated(rule, call(1, to="05", observed=observed)) == [], when


def test_observed_values_are_those_that_exist_and_large_ones_have_a_mark() -> None:
    large = "z" * OBSERVED_BYTES_MAX
    state: JsonObject = {"a": {"x.y": {"n": 1}, "3": 2}, "l": ["q"], "big": large}
    paths = ["a.$id.n", "a.$n", "l.0", "a.gone", "a.$no", "big"]
    assert observe(paths, state, {"id": "x.y", "n": 3}) == {
        **{"a.$id.n": 1, "a.$n": 2, "l.0": "q"},
        "big": {"$too_large": OBSERVED_BYTES_MAX + 2},
    }


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "forbid", "when": [{"op": "in", "path": "notes.$to", "value": "hold"}]},
        {"rule": "require", "conditions": [{"op": "exists", "path": "notes.$to"}]},
        {
            "rule": "require",
            "conditions": [
                {"op": "not", "condition": {"op": "in", "path": "notes.$to", "value": "hold"}}
            ],
        },
        {"rule": "before", "first": PAY, "about": "notes.$to"},
        {"rule": "rate", "max_calls": 1, "about": "notes.$to"},
        {"rule": "separate", "first": [{"tool_name": "enter"}], "about": "notes.$to"},
        {"rule": "separate", "calls": [{"tool_name": "enter"}], "first": PAY, "about": "notes.$to"},
    ],
)
def test_a_value_that_is_too_large_for_the_trace_violates_the_rule_that_reads_it(
    rule: dict[str, Any],
) -> None:
    note = "hold" + "z" * OBSERVED_BYTES_MAX
    observed = observe(["notes.$to"], {"notes": {"bob": note}}, {"to": "bob"})
    assert violated(rule, call(1, observed=observed, to="bob")) == [1]
    assert violated(rule, call(1, "look", observed=observed, to="bob")) == []


@pytest.mark.parametrize(
    "policy", [{"rules": [{}]}, {"rules": 1}, {"gates": [1]}, {"canaries": [{"paths": 1}]}]
)
def test_a_trace_with_a_malformed_policy_is_a_value_error(policy: JsonObject) -> None:
    with pytest.raises(ValueError, match="no valid policy"):
        read_evidence([{"kind": "opened", "policy": policy}, call()])
