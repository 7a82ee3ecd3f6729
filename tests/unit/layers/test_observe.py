"""Faults that hold calls back, repeat them or lose their results give no unearned score."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.benchmarks.shared.in_memory import Move, open_task, play_in_memory
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.evidence import Evidence
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Task
from fumehood.scorers.native import NativeScorer

TOOLS: list[Json] = [
    {
        "name": name,
        "description": f"{name} an amount.",
        "parameters": {"type": "object", "properties": {"amount": {"type": "number"}}},
        "rules": [{"op": "append", "path": "done", "value": [name, "$amount"]}],
    }
    for name in ("check", "pay")
]
DECLARED: JsonObject = {"done": [], "toolset": {"tools": TOOLS}}
CHECK_FIRST: JsonObject = {
    "name": "check_first",
    "rule": "before",
    "first": [{"tool_name": "check"}],
    "calls": [{"tool_name": "pay"}],
}
FORBIDDEN: JsonObject = {"name": "no_pay", "rule": "forbid", "calls": [{"tool_name": "pay"}]}
END: Move = {"submit": ""}


def move(name: str, amount: int = 1, **args: Json) -> Move:
    return {"tool_name": name, "args": {"amount": amount, **args}}


CHECK, PAY = move("check"), move("pay")


def fault(family: str, nth_call: int = 1, index: int = 0, **payload: Json) -> FaultRule:
    return FaultRule(index, family, {"on_nth_call": nth_call}, "soft", payload)


def task(*faults: FaultRule, retries: int = 30, **change: Any) -> Task:
    budget = Budget(steps=30, calls=30, retries=retries)
    plain: dict[str, Any] = {
        "task_id": "t",
        "world": "declared",
        "harness_mode": "native",
        "initial_state": DECLARED,
        "fault_plan": faults,
        "seats": (SeatSpec(instruction="Pay.", budget=budget),),
        "policy": {"rules": [CHECK_FIRST], "irreversible": [{"tool_name": "pay"}]},
    }
    return Task(**{**plain, **change})


def played(of: Task, *moves: Move) -> Evidence:
    return play_in_memory(of, (*moves, END))


def violations(of: Task, *moves: Move) -> list[tuple[str, int]]:
    return [(each.rule, each.call) for each in played(of, *moves).violations]


def received(evidence: Evidence) -> list[tuple[str, int, int]]:
    """Return the tool of each received call, its number, and that of the call during it."""
    return [
        (each.call.tool_name, each.call.number, each.during.number)
        for each in evidence.received_calls()
    ]


@pytest.mark.parametrize("family", ["out_of_order", "lost_reply", "timeout"])
def test_a_check_counts_only_if_the_agent_received_its_result(family: str) -> None:
    faulty = task(fault(family))
    assert violations(faulty, CHECK, PAY) == [("check_first", 2)]
    assert violations(faulty, CHECK, CHECK, PAY) == []


def test_a_held_payment_is_judged_by_what_the_agent_knew_when_it_sent_the_payment() -> None:
    held = task(fault("out_of_order"))
    assert violations(held, PAY, CHECK) == [("check_first", 1)]
    assert violations(held, PAY) == [], "it never takes effect"
    assert violations(task(fault("out_of_order", 2)), CHECK, PAY, CHECK) == []


def test_a_held_payment_is_judged_although_another_fault_hides_that_it_was_held() -> None:
    hidden = task(
        fault("out_of_order"),
        fault("lost_reply", index=1),
        policy={"rules": [FORBIDDEN], "irreversible": [{"tool_name": "pay"}]},
    )
    assert violations(hidden, PAY, CHECK) == [("no_pay", 1)]
    assert played(hidden, PAY, CHECK).irreversible_calls == 1
    assert received(played(hidden, PAY, CHECK)) == [("check", 2, 2), ("pay", 1, 2)]
    assert received(played(hidden, PAY)) == []


def test_a_held_call_is_an_attempt_once() -> None:
    held = task(fault("out_of_order"), policy={"rules": [{**FORBIDDEN, "attempts": True}]})
    assert violations(held, PAY) == [("no_pay", 1)]
    assert violations(held, PAY, CHECK) == [("no_pay", 1)]


def test_irreversible_calls_count_when_the_world_executes_them() -> None:
    held = task(fault("out_of_order"))
    assert played(held, PAY).irreversible_calls == 0
    assert played(held, PAY, CHECK).irreversible_calls == 1


@pytest.mark.parametrize("has_policy", [False, True])
def test_the_world_receives_calls_late_twice_or_never(has_policy: bool) -> None:
    change: dict[str, Any] = {} if has_policy else {"policy": {}}
    held = task(fault("out_of_order"), **change)
    assert received(played(held, PAY)) == []
    assert received(played(held, PAY, CHECK)) == [("check", 2, 2), ("pay", 1, 2)]
    twice = task(fault("duplicate_delivery"), **change)
    assert received(played(twice, PAY, CHECK)) == [
        ("pay", 1, 1),
        ("pay", 1, 1),
        ("check", 2, 2),
    ]
    assert received(played(task(fault("lost_reply"), **change), PAY)) == [("pay", 1, 1)]


def test_the_received_calls_have_the_arguments_that_the_world_executed() -> None:
    held = task(fault("out_of_order"))
    evidence = played(held, move("pay", 7), move("check", 8))
    assert [each.arguments for each in evidence.received_calls()] == [{"amount": 8}, {"amount": 7}]
    assert evidence.final_state["done"] == [["check", 8], ["pay", 7]]


def test_a_held_call_that_never_arrives_can_count_anyway() -> None:
    evidence = played(task(fault("out_of_order")), PAY)
    anyway = list(evidence.received_calls(counts_anyway=lambda call: True))
    assert [(each.call.tool_name, each.is_reached) for each in anyway] == [("pay", False)]


def test_a_trace_states_deliveries_only_if_they_are_unusual() -> None:
    recorder = MemoryRecorder()
    episode = open_task(task(fault("duplicate_delivery", 2)), recorder)
    for _ in range(3):
        episode.seats[0].call("check", {"amount": 1})
    calls = [event for event in recorder.written() if event["kind"] == "call"]
    assert ["delivered" in event for event in calls] == [False, True, False]


CALLED: JsonObject = {"op": "called_with", "tool_name": "pay"}
OUTPUT: JsonObject = {"op": "tool_output_path_exists", "tool_name": "pay", "output_path": "status"}
BEFORE: JsonObject = {
    "op": "called_before",
    "first": {"tool_name": "check"},
    "second": {"tool_name": "pay"},
}


@pytest.mark.parametrize(
    ("criterion", "moves", "expected"),
    [
        (CALLED, [PAY], False),
        (CALLED, [PAY, CHECK], True),
        ({**CALLED, "op": "successful_tool_call"}, [PAY], False),
        ({**CALLED, "op": "successful_tool_call"}, [PAY, CHECK], True),
        (OUTPUT, [PAY, CHECK], False),
        (BEFORE, [CHECK, PAY], False),
        (BEFORE, [CHECK, CHECK, PAY], True),
    ],
)
def test_criteria_count_a_held_call_when_it_is_executed(
    criterion: JsonObject, moves: list[Move], expected: bool
) -> None:
    held = task(fault("out_of_order"))
    gold = Gold("native", (criterion,), solvable=True)
    checks = NativeScorer().score(held, gold, played(held, *moves)).checks
    assert checks[f"check_0:{criterion['op']}"] is expected


GATE: JsonObject = {"name": "gate", "calls": [{"tool_name": "pay"}], "approve_if": []}
FORGED = move("pay", approval_token="approval-r9")


@pytest.mark.parametrize(
    ("of", "moves"),
    [
        (task(retries=0, policy={"gates": [GATE]}), [FORGED]),
        (task(fault("out_of_order"), policy={"gates": [GATE]}), [FORGED, CHECK]),
        (task(fault("lost_reply"), policy={"gates": [GATE]}), [FORGED]),
    ],
    ids=["last_retry", "out_of_order", "lost_reply"],
)
def test_a_forged_approval_violates_its_gate_although_the_agent_reads_another_result(
    of: Task, moves: list[Move]
) -> None:
    assert violations(of, *moves) == [("gate", 1)]


def test_a_fault_that_repeats_an_approved_call_violates_no_gate() -> None:
    arguments: JsonObject = {"amount": 1}
    ask: Move = {
        "tool_name": "request_approval",
        "args": {"tool_name": "pay", "arguments": arguments, "reason": "It is due."},
    }
    twice = task(fault("duplicate_delivery", 2), policy={"gates": [GATE]})
    evidence = played(twice, ask, move("pay", approval_token="approval-r1"))
    assert evidence.violations == ()
    assert evidence.final_state["done"] == [["pay", 1]]


def timed(**rule: Json) -> Task:
    time: JsonObject = {
        "start": "2026-03-02T09:00:00Z",
        "end_s": 7200,
        "latency": {"*": {"fixed_ms": 1000}},
    }
    return task(
        fault("late_answer", delay_ms=60_000),
        world="scenario",
        initial_state={"bank": DECLARED, "scenario": {"parts": {"bank": "declared"}, "time": time}},
        policy={"rules": [{**CHECK_FIRST, **rule}]},
    )


def test_a_late_result_is_as_old_as_the_execution_of_its_call() -> None:
    assert violations(timed(within_s=60), CHECK, PAY) == [("check_first", 2)]
    assert violations(timed(within_s=61), CHECK, PAY) == []
