"""Every event that the core writes has the form of its kind, and no other value has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.core.conversation import TurnBegan, TurnEnded
from fumehood.core.event_forms import DEPTH_MAX, WrongForm, parse_event
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import (
    AgentCrashed,
    CallRefused,
    ConfidenceStated,
    EndedByMonitor,
    Finished,
    GaveUp,
    ModelProblem,
    MonitorFailed,
    OutOfBudget,
    Stopped,
    TimedOut,
)
from fumehood.core.received import Delivery
from fumehood.core.tools import Failure, FailureKind, FiredFault, ToolCall, Value
from fumehood.core.trace import (
    CallMade,
    EpisodeClosed,
    EpisodeOpened,
    Event,
    ModelCalled,
    ModelProblemNoted,
    ModelRefused,
    MonitorDecided,
    PermissionAnswered,
    ProviderChecked,
    SeatEnded,
)
from fumehood.core.virtual_time import WorldEvent
from tests.parts.specs import episode_spec
from tests.property.packages.values import COUNTS, FLAT_OBJECTS, TEXT

UNITS = st.dictionaries(TEXT, COUNTS, max_size=2)
AMOUNTS = st.dictionaries(st.sampled_from(BudgetKind), COUNTS, max_size=2)
FAULTS = st.lists(
    st.builds(
        FiredFault,
        COUNTS,
        TEXT,
        TEXT,
        FLAT_OBJECTS,
        st.none() | FLAT_OBJECTS,
        code_before=st.none() | TEXT,
    ),
    max_size=2,
).map(tuple)
FAILURE_KINDS = st.sampled_from(FailureKind)
RESULTS = st.builds(Value, FLAT_OBJECTS, FAULTS) | st.builds(
    Failure, FAILURE_KINDS, TEXT, TEXT, FLAT_OBJECTS, FAULTS, st.none() | FAILURE_KINDS
)
DELIVERIES = st.builds(Delivery, COUNTS, FLAT_OBJECTS, st.booleans(), FLAT_OBJECTS, TEXT)
STEPS = st.sampled_from(["tool", "model"])
PROBLEMS = st.sampled_from(ModelProblem)
ENDS = st.one_of(
    st.builds(Finished, TEXT),
    st.builds(GaveUp, TEXT),
    st.builds(Stopped, PROBLEMS),
    st.builds(OutOfBudget, st.sampled_from(BudgetKind)),
    st.builds(TimedOut, COUNTS),
    st.builds(AgentCrashed, TEXT),
    st.builds(EndedByMonitor, TEXT, STEPS),
    st.builds(MonitorFailed, TEXT, STEPS, TEXT),
)
SPECS = st.builds(
    lambda policy, monitors: replace(episode_spec(), policy=policy, monitors=tuple(monitors)),
    FLAT_OBJECTS,
    st.lists(TEXT, max_size=2),
)
EVENTS: dict[type[Event], st.SearchStrategy[Event]] = {
    EpisodeOpened: st.builds(EpisodeOpened, SPECS),
    CallMade: st.builds(
        CallMade,
        TEXT,
        st.builds(ToolCall, TEXT, FLAT_OBJECTS, COUNTS),
        RESULTS,
        TEXT,
        AMOUNTS,
        AMOUNTS,
        st.none() | COUNTS,
        st.none() | FLAT_OBJECTS,
        st.lists(TEXT, max_size=2).map(tuple),
        st.none() | st.booleans(),
        st.none() | COUNTS,
        TEXT,
        st.none() | st.lists(DELIVERIES, max_size=2).map(tuple),
        st.none() | FLAT_OBJECTS,
    ),
    CallRefused: st.builds(CallRefused, TEXT, TEXT, COUNTS, COUNTS),
    ConfidenceStated: st.builds(ConfidenceStated, TEXT, st.floats(0, 1)),
    ModelCalled: st.builds(
        ModelCalled,
        seat=TEXT,
        model=TEXT,
        request=TEXT,
        status=COUNTS,
        response=TEXT,
        reported=UNITS,
        spent=UNITS,
    ),
    ModelRefused: st.builds(
        ModelRefused, seat=TEXT, reason=TEXT, needs=FLAT_OBJECTS, budget=FLAT_OBJECTS
    ),
    ModelProblemNoted: st.builds(
        ModelProblemNoted, TEXT, PROBLEMS, st.sampled_from(["gateway", "agent"])
    ),
    PermissionAnswered: st.builds(PermissionAnswered, TEXT, TEXT, TEXT),
    ProviderChecked: st.builds(
        ProviderChecked, seat=TEXT, provider=TEXT, model=TEXT, result=TEXT, failed=st.booleans()
    ),
    TurnBegan: st.builds(TurnBegan, TEXT, COUNTS, TEXT),
    TurnEnded: st.builds(TurnEnded, TEXT, COUNTS, TEXT),
    WorldEvent: st.builds(WorldEvent, TEXT, COUNTS, st.booleans()),
    MonitorDecided: st.builds(
        MonitorDecided,
        monitor=TEXT,
        seat=TEXT,
        step=STEPS,
        stage=st.sampled_from(["before", "after"]),
        number=COUNTS,
        decision=st.none() | FLAT_OBJECTS,
        failed=TEXT,
        original=st.none() | FLAT_OBJECTS,
        spent=st.none() | UNITS,
    ),
    SeatEnded: st.builds(SeatEnded, TEXT, ENDS),
    EpisodeClosed: st.builds(EpisodeClosed, FLAT_OBJECTS, st.lists(COUNTS, max_size=2).map(tuple)),
}
WRONG: tuple[Any, ...] = (None, True, 5, "text", [], {})


def test_every_kind_of_event_has_examples() -> None:
    assert EVENTS.keys() == set(get_args(Event))


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_passes_and_with_one_field_of_another_type_it_does_not(
    kind: type[Event],
) -> None:
    @settings(max_examples=10, deadline=None)
    @given(EVENTS[kind])
    def holds(event: Event) -> None:
        text = canonical_json(event.to_json())
        assert parse_event(text) == json.loads(text)
        for key, value in event.to_json().items():
            for wrong in WRONG:
                if type(wrong) is not type(value) and (type(value), wrong) != (float, 5):
                    refuse({**event.to_json(), key: wrong})
            if type(value) in (int, float):
                refuse({**event.to_json(), key: 2**63})
        refuse({**event.to_json(), "unknown": 1})

    holds()


def test_a_number_of_the_service_fits_into_64_bits() -> None:
    closed: dict[str, Any] = EpisodeClosed({}, ()).to_json()
    for number in (-(2**63), 2**63 - 1):
        event = {**closed, "fire_counts": [number]}
        assert parse_event(canonical_json(event)) == event
    for number in (-(2**63) - 1, 2**63):
        refuse({**closed, "fire_counts": [number]})


def refuse(event: JsonObject) -> None:
    with pytest.raises(WrongForm):
        parse_event(canonical_json(event))


CALL: dict[str, Any] = CallMade("a", ToolCall("t", {}, 1), Value({}), "d").to_json()
FAILED: dict[str, Any] = CallMade(
    "a", ToolCall("t", {}, 1), Failure(FailureKind.WORLD, "c", "m"), "d"
).to_json()
MONITOR: dict[str, Any] = MonitorDecided(
    monitor="m", seat="a", step="tool", stage="after", number=1, decision={}
).to_json()
CALLED: dict[str, Any] = ModelCalled(
    seat="a", model="m", request="r", status=200, response="r"
).to_json()


@pytest.mark.parametrize(
    "event",
    [
        {**CALL, "faults": ["timeout"]},
        {**CALL, "faults": [{"family": "timeout"}]},
        {**CALL, "faults": [{"family": "timeout", "rule": 2**63}]},
        {**CALL, "charged": {"calls": "1"}},
        {**CALL, "charged": {"unknown": 1}},
        {**CALL, "executed": False},
        {**CALL, "failure": FAILED["failure"]},
        {key: value for key, value in CALL.items() if key != "output"},
        {**FAILED, "failure": {"kind": "another", "code": "c", "message": "m", "details": {}}},
        {**FAILED, "failure": {"kind": "world", "code": "c", "message": "m"}},
        {**MONITOR, "failed": "deadline"},
        {**MONITOR, "stage": "later"},
        {**CALLED, "spent": {"model_tokens": 1.5}},
        {"kind": "seat_ended", "seat": "a", "end": {"outcome": "finished"}},
        {"kind": "seat_ended", "seat": "a", "end": {"outcome": "timed_out", "wall_ms": True}},
        {
            "kind": "seat_ended",
            "seat": "a",
            "end": {"outcome": "infra", "kind": "service", "detail": "no"},
        },
        {"kind": "closed", "final_state": {}, "fire_counts": [1, "2"]},
        {"kind": "sealed", "events": 1},
        {"kind": "closed"},
        {"kind": []},
        {},
    ],
    ids=str,
)
def test_a_wrong_part_of_an_event_is_refused(event: dict[str, Any]) -> None:
    refuse(event)


@pytest.mark.parametrize(
    "value",
    ["NaN", "-Infinity", "1e999", "9" * 5000, "[" * DEPTH_MAX + "]" * DEPTH_MAX, "[" * 100_000],
    ids=lambda value: value[:12],
)
def test_a_value_that_no_later_reader_could_use_is_refused(value: str) -> None:
    closed = '{"final_state":{"a":%s},"fire_counts":[],"kind":"closed"}'
    assert parse_event(closed % "[[1000000000.0]]")
    with pytest.raises(WrongForm):
        parse_event(closed % value)


def test_an_event_is_refused_with_the_name_of_the_field() -> None:
    with pytest.raises(
        WrongForm, match=r"'fire_counts' of 'closed' is missing or has the wrong type"
    ):
        parse_event('{"final_state":{},"fire_counts":null,"kind":"closed"}')


@pytest.mark.parametrize(
    "text",
    [
        ' {"final_state":{},"fire_counts":[],"kind":"closed"}',
        '{"final_state":{},"fire_counts":[], "kind":"closed"}',
        '{"fire_counts":[],"final_state":{},"kind":"closed"}',
        '{"final_state":{},"fire_counts":[1],"fire_counts":[],"kind":"closed"}',
        '{"final_state":{"a":1e9},"fire_counts":[],"kind":"closed"}',
    ],
    ids=["blank before", "blank within", "order of keys", "key twice", "number"],
)
def test_an_event_that_is_not_in_canonical_form_is_refused(text: str) -> None:
    with pytest.raises(WrongForm, match="not canonical JSON"):
        parse_event(text)
