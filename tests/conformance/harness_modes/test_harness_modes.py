"""The rules that every harness mode follows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fumehood.core.clock import StoppedClock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.evidence import read_evidence
from fumehood.core.json_values import JsonObject, digest_json
from fumehood.core.ledger import Budget, BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished, OutOfBudget
from fumehood.core.tools import Failure, Value
from fumehood.harness_modes.registry import HARNESS_MODES, HarnessMode
from fumehood.monitors.rules import RuleMonitor
from tests.parts.monitors import LocalReviewer
from tests.parts.specs import ACCOUNTS, episode_spec

FAULTS: tuple[Mapping[str, Any], ...] = (
    {"family": "timeout", "trigger": {"on_nth_call": 1}, "payload": {"timeout_ms": 5}},
    {"family": "rate_limit", "trigger": {"on_nth_call": 2}},
    {"family": "authz", "trigger": {"on_nth_call": 3}, "payload": {"required_role": "admin"}},
    {
        "family": "schema_drift",
        "trigger": {"on_nth_call": 4},
        "payload": {"rename_args": {"id": "ref"}},
    },
    {
        "family": "adversarial_error",
        "trigger": {"prob": 0.5},
        "payload": {"messages": ["a", "b"]},
    },
)
NEVER_FIRES = {"family": "timeout", "trigger": {"on_tool": "close_account"}}


@dataclass(slots=True)
class Opened:
    """An open episode and its recorded events."""

    harness_mode: HarnessMode
    episode: Episode
    recorder: MemoryRecorder

    def call(self, tool: str, /, seat: int = 0, **arguments: Any) -> Value | Failure:
        return self.episode.seats[seat].call(tool, arguments).result

    def events(self) -> list[dict[str, Any]]:
        return list(self.recorder.written())


@pytest.fixture(params=list(HARNESS_MODES))
def name(request: pytest.FixtureRequest) -> str:
    """The name of every harness mode."""
    return str(request.param)


def opened(spec: EpisodeSpec) -> Opened:
    harness_mode, recorder = HARNESS_MODES.load(spec.harness_mode)(), MemoryRecorder()
    return Opened(harness_mode, harness_mode.open_episode(spec, recorder, StoppedClock()), recorder)


def played(spec: EpisodeSpec) -> list[dict[str, Any]]:
    """Return the events of an episode with valid and invalid calls."""
    one = opened(spec)
    for _ in range(6):
        one.call("get_account", id="ax1")
        one.call("get_account", id="absent")
    one.call("update_account", id="ax1", patch={"tier": "pro"})
    one.call("no_such_tool")
    one.call("get_account", ref=1)
    one.episode.seats[0].finish(Finished())
    one.episode.close()
    return one.events()


def test_a_call_that_a_monitor_refuses_is_charged_and_has_no_effect(name: str) -> None:
    rule: JsonObject = {"name": "updates", "tool": "update_account", "action": "refuse"}
    spec = replace(episode_spec(harness_mode=name, calls=9, retries=9), monitors=("RuleMonitor",))
    reviewer, recorder = LocalReviewer(RuleMonitor({"rules": [rule]})), MemoryRecorder()
    harness_mode = HARNESS_MODES.load(name)()
    episode = harness_mode.open_episode(spec, recorder, StoppedClock(), reviewer)
    (seat,) = episode.seats
    refused = seat.call("update_account", {"id": "ax1", "patch": {"tier": "pro"}})
    assert isinstance(refused.result, Failure)
    assert refused.result.code == "refused_by_monitor"
    assert refused.remaining == {BudgetKind.CALLS: 8, BudgetKind.RETRIES: 8}
    assert isinstance(seat.call("get_account", {"id": "ax1"}).result, Value)
    episode.close()
    opened_event, *events = recorder.written()
    assert opened_event["monitors"] == ["RuleMonitor"]
    assert [event["kind"] for event in events] == ["monitor", "call", "call", "closed"]
    assert events[1]["state"] == opened_event["state"]
    assert events[-1]["final_state"] == ACCOUNTS


def test_the_first_event_is_opened_and_the_last_is_closed(name: str) -> None:
    events = played(episode_spec(harness_mode=name))
    assert [event["kind"] for event in events] == ["opened", *["call"] * 15, "seat_ended", "closed"]
    assert events[0]["state"] == digest_json(ACCOUNTS)
    assert events[-1]["final_state"]["accounts"]["ax1"]["tier"] == "pro"


def test_it_does_not_change_the_given_state(name: str) -> None:
    state = deepcopy(ACCOUNTS)
    played(episode_spec(harness_mode=name, state=state))
    assert state == ACCOUNTS


def test_the_same_episode_gives_the_same_events(name: str) -> None:
    spec = episode_spec(*FAULTS, harness_mode=name)
    assert played(spec) == played(spec)


def test_another_seed_gives_other_events(name: str) -> None:
    traces = {
        json.dumps(played(episode_spec(*FAULTS, harness_mode=name, seed=seed))[1:])
        for seed in range(8)
    }
    assert len(traces) > 1


def test_it_counts_how_often_each_fault_fired(name: str) -> None:
    evidence = read_evidence(played(episode_spec(*FAULTS, NEVER_FIRES, harness_mode=name)))
    assert evidence.fire_counts[:4] == (1, 1, 1, 1)
    assert evidence.fire_counts[4] > 0
    assert evidence.fire_counts[5] == 0


def test_the_trace_keeps_the_arguments_that_were_sent(name: str) -> None:
    one = opened(
        episode_spec(
            {"family": "schema_drift", "payload": {"add_required": {"x": 1}}}, harness_mode=name
        )
    )
    one.call("get_account", id="ax1", x=1)
    call = one.events()[1]
    assert call["arguments"] == {"id": "ax1", "x": 1}


def test_rejected_calls_are_charged_too(name: str) -> None:
    one = opened(episode_spec(harness_mode=name, steps=3, calls=9, retries=9))
    for tool in ("get_account", "no_such_tool", "get_account"):
        one.call(tool, id="absent")
    seat = one.episode.seats[0]
    assert seat.end == OutOfBudget(BudgetKind.STEPS)
    assert seat.ledger.remaining() == {
        BudgetKind.STEPS: 0,
        BudgetKind.CALLS: 6,
        BudgetKind.RETRIES: 6,
    }


@pytest.mark.parametrize(
    ("budget", "calls", "kind"),
    [
        ({"steps": 2}, 2, BudgetKind.STEPS),
        ({"calls": 2}, 3, BudgetKind.CALLS),
        ({"retries": 1}, 2, BudgetKind.RETRIES),
    ],
)
def test_each_budget_ends_the_work_at_its_limit(
    name: str, budget: dict[str, Any], calls: int, kind: BudgetKind
) -> None:
    one = opened(episode_spec(harness_mode=name, **budget))
    ends = []
    for _ in range(calls):
        one.call("get_account", id="absent")
        ends.append(one.episode.seats[0].end)
    assert ends == [None] * (calls - 1) + [OutOfBudget(kind)]


def test_a_call_beyond_the_budget_changes_nothing(name: str) -> None:
    one = opened(episode_spec(harness_mode=name, calls=1))
    one.call("get_account", id="ax1")
    refusal = one.call("close_account", id="ax1", reason="")
    assert isinstance(refusal, Failure)
    assert refusal.code == "budget_exceeded"
    assert one.episode.world.state == ACCOUNTS


def test_a_fault_that_replaces_the_tool_changes_nothing(name: str) -> None:
    for family in ("timeout", "rate_limit", "authz"):
        one = opened(episode_spec({"family": family}, harness_mode=name))
        assert isinstance(one.call("close_account", id="ax1", reason=""), Failure)
        assert one.episode.world.state == ACCOUNTS


def test_seats_share_the_world_and_the_numbering_but_not_the_budget(name: str) -> None:
    seats = [
        SeatSpec(name=seat, instruction=seat, budget=Budget(steps=steps))
        for seat, steps in (("a", 1), ("b", 2))
    ]
    one = opened(episode_spec(harness_mode=name, seats=seats))
    one.call("update_account", seat=0, id="ax1", patch={"tier": "pro"})
    answer = one.call("get_account", seat=1, id="ax1")
    assert answer == Value({"account": {"id": "ax1", "tier": "pro"}})
    assert [
        (event["seat"], event["number"]) for event in one.events() if event["kind"] == "call"
    ] == [
        ("a", 1),
        ("b", 2),
    ]
    assert [seat.end is None for seat in one.episode.seats] == [False, True]
    assert not one.episode.ended
    one.episode.seats[1].finish(Finished())
    assert one.episode.ended


def test_two_episodes_share_no_state(name: str) -> None:
    spec = episode_spec(*FAULTS, harness_mode=name)
    one, other = opened(spec), opened(spec)
    one.call("get_account", id="ax1")
    one.call("update_account", id="ax1", patch={"tier": "pro"})
    assert other.episode.world.state == ACCOUNTS
    assert other.call("get_account", id="ax1") == opened(spec).call("get_account", id="ax1")


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"family": "meteor"}, "fault_plan[0].family"),
        (
            {"family": "timeout", "payload": {"timeout_ms": None}},
            "fault_plan[0].payload.timeout_ms",
        ),
        (
            {"family": "timeout", "trigger": {"on_nth_call": "x"}},
            "fault_plan[0].trigger.on_nth_call",
        ),
        ({"family": "timeout", "trigger": {"prob": {}}}, "fault_plan[0].trigger.prob.p"),
        (
            {"family": "rate_limit", "payload": {"after_n_calls": []}},
            "fault_plan[0].payload.after_n_calls",
        ),
        (
            {"family": "schema_drift", "payload": {"rename_args": {"id": None}}},
            "fault_plan[0].payload.rename_args.id",
        ),
        (
            {"family": "adversarial_error", "payload": {"message": "\ud800"}},
            "fault_plan[0].payload.message",
        ),
        (
            {"family": "adversarial_error", "payload": {"messages": ["a", "\udfff"]}},
            "fault_plan[0].payload.messages",
        ),
    ],
)
def test_an_invalid_plan_is_rejected_with_its_field(
    name: str, rule: dict[str, Any], field: str
) -> None:
    with pytest.raises(SpecError) as raised:
        opened(episode_spec(rule, harness_mode=name))
    assert raised.value.field == field
    assert "\n" not in str(raised.value)


def test_an_unknown_world_is_rejected_with_the_nearest_name(name: str) -> None:
    with pytest.raises(InputError, match="did you mean 'crud'"):
        opened(episode_spec(harness_mode=name, world="crude"))


def test_recorded_arguments_are_an_object_or_absent(name: str) -> None:
    one = opened(episode_spec(*FAULTS, harness_mode=name))
    for _ in range(5):
        reply = one.episode.seats[0].call("get_account", {"id": "ax1"})
        recorded = reply.recorded_arguments
        assert recorded is None or isinstance(recorded, dict)
