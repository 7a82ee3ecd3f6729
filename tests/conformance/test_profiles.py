"""What every profile promises, over every world."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.benchmarks.table import load_suite
from runner.core.clock import StoppedClock
from runner.core.episode import Episode
from runner.core.episode_spec import EpisodeSpec, SeatSpec
from runner.core.errors import InputError, SpecError
from runner.core.fault_plan import FaultRule
from runner.core.json_values import Json, JsonObject, canonical_json, digest_json
from runner.core.ledger import Budget, BudgetKind
from runner.core.outcome import Finished, OutOfBudget
from runner.profiles.table import PROFILES
from runner.testing.memory_recorder import MemoryRecorder
from runner.worlds.table import WORLDS

FAULT_TYPES = ["schema_drift", "timeout", "rate_limit", "authz", "adversarial_error"]
STATES = {case.task.world: case.task.initial_state for case in load_suite("sample").cases}

everywhere = pytest.mark.parametrize(("profile", "world"), [(p, w) for p in PROFILES for w in WORLDS])
each_profile = pytest.mark.parametrize("profile", list(PROFILES))


def _spec(
    profile: str, world: str, *, calls: int | None = None, trigger: dict[str, Json] | None = None
) -> EpisodeSpec:
    plan = [FaultRule(index, family, trigger or {"prob": 0.4}) for index, family in enumerate(FAULT_TYPES)]
    return EpisodeSpec(
        episode_id="e",
        world=world,
        profile=profile,
        initial_state=STATES[world],
        fault_plan=tuple(plan),
        seed=11,
        seats=(SeatSpec(instruction="Do it.", budget=Budget(calls=calls)),),
    )


def _open(spec: EpisodeSpec) -> tuple[Episode, MemoryRecorder]:
    recorder = MemoryRecorder()
    return PROFILES.load(spec.profile)().open_episode(spec, recorder, StoppedClock()), recorder


def _play(episode: Episode, rounds: int = 4) -> None:
    """Call every tool in turn, with arguments that it may or may not like."""
    words: JsonObject = {
        "string": "a",
        "integer": 1,
        "number": 1.5,
        "boolean": True,
        "object": {"tier": "gold"},
    }
    seat = episode.seats[0]
    for _ in range(rounds):
        for tool in seat.list_tools():
            properties: dict[str, dict[str, str]] = tool.parameters["properties"]  # type: ignore[assignment]
            seat.call(tool.name, {name: words.get(schema["type"]) for name, schema in properties.items()})
    seat.finish(Finished())
    episode.close()


@everywhere
def test_the_same_calls_make_the_same_trace(profile: str, world: str) -> None:
    traces = []
    for _ in range(2):
        episode, recorder = _open(_spec(profile, world))
        _play(episode)
        traces.append([canonical_json(event) for event in recorder.written()])
    assert traces[0] == traces[1]


@everywhere
def test_a_trace_tells_everything_from_opening_to_closing(profile: str, world: str) -> None:
    episode, recorder = _open(_spec(profile, world))
    _play(episode)
    events = list(recorder.written())
    kinds = [event["kind"] for event in events]
    assert kinds == ["opened", *["call"] * (len(events) - 3), "seat_ended", "closed"]
    assert [event["number"] for event in events[1:-2]] == list(range(1, len(events) - 2))
    assert events[0]["state"] == digest_json(STATES[world])
    assert events[-3]["state"] == digest_json(events[-1]["final_state"])


@everywhere
def test_what_struck_is_counted_by_rule(profile: str, world: str) -> None:
    episode, recorder = _open(_spec(profile, world))
    _play(episode)
    events = list(recorder.written())
    strikes = [strike["rule"] for event in events[1:-2] for strike in event["faults"]]  # type: ignore[union-attr, call-overload, index]
    assert events[-1]["deliveries"] == [strikes.count(rule) for rule in range(len(FAULT_TYPES))]
    assert strikes


@everywhere
def test_the_task_is_left_as_it_was(profile: str, world: str) -> None:
    before = canonical_json(STATES[world])
    _play(_open(_spec(profile, world))[0])
    assert canonical_json(STATES[world]) == before


@everywhere
def test_the_budget_ends_the_work(profile: str, world: str) -> None:
    episode, _ = _open(_spec(profile, world, calls=1, trigger={"on_tool": "another"}))
    seat = episode.seats[0]
    seat.call("no_such_tool", {})
    assert seat.end is None
    reply = seat.call("no_such_tool", {})
    assert reply.ended
    assert seat.end == OutOfBudget(BudgetKind.CALLS)
    assert reply.remaining[BudgetKind.CALLS] == 0


@everywhere
def test_seats_have_budgets_of_their_own_and_one_world(profile: str, world: str) -> None:
    spec = _spec(profile, world)
    seats = tuple(SeatSpec(name=name, instruction=name, budget=Budget(calls=2)) for name in ("one", "other"))
    episode, recorder = _open(replace(spec, seats=seats))
    one, other = episode.seats
    one.call("no_such_tool", {})
    other.call("no_such_tool", {})
    assert (one.remaining()[BudgetKind.CALLS], other.remaining()[BudgetKind.CALLS]) == (1, 1)
    calls = [event for event in recorder.written() if event["kind"] == "call"]
    assert [(call["seat"], call["number"]) for call in calls] == [("one", 1), ("other", 2)]


@each_profile
def test_an_unknown_world_is_refused(profile: str) -> None:
    with pytest.raises(InputError, match="no world is called 'cruds'; did you mean 'crud'"):
        _open(replace(_spec(profile, "crud"), world="cruds"))


@each_profile
def test_an_unknown_fault_is_refused_by_its_place(profile: str) -> None:
    plan = (FaultRule(0, "timeout"), FaultRule(1, "timeouts"))
    with pytest.raises(SpecError) as refusal:
        _open(replace(_spec(profile, "crud"), fault_plan=plan))
    assert refusal.value.field == "fault_plan[1].fault_type"
