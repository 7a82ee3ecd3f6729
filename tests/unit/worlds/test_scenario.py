"""Scenarios: virtual time, events, messages and several parts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.core.clock import Clock
from fumehood.core.fault_plan import KeyedRandom
from fumehood.core.json_values import json_bytes
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import ToolCall, Value
from fumehood.core.trace import CallMade
from fumehood.core.virtual_time import WorldEvent, latency_of
from fumehood.harness_modes.native import Native
from fumehood.layers.take_time import TakeTime
from fumehood.worlds.declared import STATE_BYTES_MAX
from fumehood.worlds.scenario import Scenario
from tests.conformance.worlds.declared_examples import tool
from tests.parts.specs import episode_spec

START = "2026-03-02T06:00:00Z"


def tank(level: int = 0) -> dict[str, Any]:
    rules = [{"op": "get", "path": "level", "output": "level"}]
    add = [{"op": "set", "path": "level", "value": {"$add": [{"$get": "level"}, "$litres"]}}]
    stamp = [{"op": "set", "path": "seen_at", "value": {"$get": "time.elapsed_s"}}]
    return {
        "level": level,
        "seen_at": None,
        "toolset": {
            "tools": [
                tool("read", rules),
                tool("add", add, litres="integer"),
                tool("stamp", stamp),
            ]
        },
    }


def state(*events: dict[str, Any], **times: Any) -> dict[str, Any]:
    declared_time: dict[str, Any] = {"start": START, "end_s": 3600, **times}
    return {
        "scenario": {"parts": {"tank": "declared"}, "time": declared_time, "events": [*events]},
        "tank": tank(),
    }


def scenario(*events: dict[str, Any], **times: Any) -> tuple[Scenario, list[WorldEvent]]:
    world, events_seen = Scenario(state(*events, **times)), list[WorldEvent]()
    world.begin(events_seen.append)
    return world, events_seen


def call(world: Any, name: str, /, **arguments: Any) -> Any:
    """Return the output, or the error code of a rejection."""
    result = world.call(ToolCall(name, arguments))
    return result.output if isinstance(result, Value) else result.code


def rise(by: int = 1) -> list[dict[str, Any]]:
    value = {"$add": [{"$get": "tank.level"}, by]}
    return [{"op": "set", "path": "tank.level", "value": value}]


def at_least(value: int) -> dict[str, Any]:
    return {"op": "at_least", "path": "tank.level", "value": value}


def test_a_wait_passes_time_and_recurring_events_occur_in_it() -> None:
    world, events = scenario({"name": "rise", "every_s": 60, "rules": rise()})
    assert call(world, "wait", seconds=180)["now"] == "2026-03-02T06:03:00+00:00"
    assert call(world, "read") == {"level": 3}
    assert [(event.name, event.at_ms) for event in events] == [
        ("rise", 60_000),
        ("rise", 120_000),
        ("rise", 180_000),
    ]


def test_a_message_ends_a_wait_at_its_time_and_is_read_once() -> None:
    world, _ = scenario(
        {"name": "rise", "every_s": 60, "rules": rise()},
        {"name": "alarm", "when": at_least(2), "message": "The level is 2."},
    )
    woken = call(world, "wait", until="2026-03-02T07:00:00+00:00")
    assert woken == {
        "now": "2026-03-02T06:02:00+00:00",
        "messages": [{"at": "2026-03-02T06:02:00+00:00", "text": "The level is 2."}],
    }
    assert call(world, "now")["messages"] == []


def test_a_condition_causes_an_event_once_and_with_repeat_each_time_it_begins_to_hold() -> None:
    once, events = scenario({"name": "high", "when": at_least(5), "message": "High."})
    again, events_again = scenario(
        {"name": "high", "when": at_least(5), "message": "High.", "repeat": True}
    )
    for world in (once, again):
        for litres in (6, -3, 4, 1):
            call(world, "add", litres=litres)
    assert len(events) == 1
    assert len(events_again) == 2, "the last call changed a level that was high already"


def test_a_delayed_event_has_no_effect_if_its_condition_no_longer_holds() -> None:
    alarm = {
        "name": "burst",
        "when": at_least(5),
        "after_s": 30,
        "requires": [at_least(5)],
        "rules": [{"op": "set", "path": "tank.level", "value": -1}],
    }
    world, events = scenario(alarm)
    call(world, "add", litres=5)
    call(world, "add", litres=-1)
    call(world, "wait", seconds=60)
    assert [(event.at_ms, event.had_effect) for event in events] == [(30_000, False)]
    assert call(world, "read") == {"level": 4}


def test_rules_of_an_event_apply_together_or_not_at_all() -> None:
    rules = [*rise(), {"op": "delete", "path": "tank.absent"}]
    world, events = scenario({"name": "fails", "at_s": 10, "rules": rules})
    call(world, "wait", seconds=20)
    assert [event.had_effect for event in events] == [False]
    assert call(world, "read") == {"level": 0}


def test_an_event_that_one_part_cannot_hold_changes_no_part() -> None:
    big = "x" * 990_000
    rules = [
        {"op": "set", "path": "left.level", "value": 7},
        {"op": "set", "path": "right.text", "value": big * 3},
    ]
    event = {"name": "large", "at_s": 10, "rules": rules}
    parts = {"left": "declared", "right": "declared"}
    declared: dict[str, Any] = {
        "parts": parts,
        "time": {"start": START, "end_s": 60},
        "events": [event],
    }
    world = Scenario({"scenario": declared, "left": tank(), "right": tank()})
    events = list[WorldEvent]()
    world.begin(events.append)
    before = [part["level"] for part in (world.state["left"], world.state["right"])]  # type: ignore[index, call-overload]
    world.pass_us(20_000_000)
    assert [event.had_effect for event in events] == [False]
    assert before == [part["level"] for part in (world.state["left"], world.state["right"])]  # type: ignore[index, call-overload]


def test_an_agent_that_fills_the_state_of_a_part_prevents_no_event() -> None:
    note = tool("note", [{"op": "set", "path": "text", "value": "$text"}], text="string")
    grows = {"name": "grows", "every_s": 10, "rules": rise(5)}
    given = state(grows)
    given["tank"]["toolset"]["tools"].append(note)
    free_bytes = STATE_BYTES_MAX - json_bytes({**given["tank"], "text": ""})
    world, events = Scenario(given), list[WorldEvent]()
    world.begin(events.append)
    assert call(world, "note", text="x" * (free_bytes + 1)) == "too_large"
    assert call(world, "note", text="x" * free_bytes) == {"ok": True}
    world.pass_us(30_000_000)
    assert [event.had_effect for event in events] == [True] * 3
    assert call(world, "read") == {"level": 15}
    assert call(world, "note", text="x" * free_bytes) == "too_large"


def test_an_event_that_removes_a_whole_part_leaves_it_empty() -> None:
    world, events = scenario(
        {"name": "gone", "at_s": 10, "rules": [{"op": "delete", "path": "tank"}]}
    )
    call(world, "wait", seconds=20)
    assert [event.had_effect for event in events] == [True]
    assert call(world, "read") == "not_found"


@pytest.mark.slow
def test_an_event_that_is_always_due_does_not_hang() -> None:
    world, events = scenario({"name": "always", "every_s": 0, "requires": [at_least(1)]})
    call(world, "wait", seconds=1)
    assert len(events) == 100_000


def test_the_work_of_a_long_wait_is_proportional_to_its_events_and_not_to_its_time() -> None:
    checks = []
    for end_s in (86_400, 100 * 86_400):
        ticks = {"name": "tick", "every_s": end_s // 200, "rules": rise()}
        world, events = scenario(ticks, end_s=end_s)
        begun = world.revision
        call(world, "wait", seconds=end_s)
        assert len(events) == 200
        checks.append(world.revision - begun)
    assert checks[0] == checks[1]


def test_tools_of_a_part_read_the_time() -> None:
    world, _ = scenario()
    call(world, "wait", seconds=90)
    call(world, "stamp")
    assert world.state["tank"]["seen_at"] == 90  # type: ignore[index, call-overload]
    assert world.state["time"]["elapsed_s"] == 90  # type: ignore[index, call-overload]


def test_nothing_can_be_done_after_the_end() -> None:
    world, _ = scenario(end_s=100)
    assert call(world, "wait", seconds=500)["now"] == "2026-03-02T06:01:40+00:00"
    assert call(world, "add", litres=1) == "time_over"
    assert call(world, "now")["now"] == "2026-03-02T06:01:40+00:00"


def test_tools_with_the_same_name_get_the_name_of_their_part() -> None:
    parts = {"left": "declared", "right": "declared", "folder": "files"}
    declared: dict[str, Any] = {"parts": parts, "time": {"start": START, "end_s": 60}}
    world = Scenario(
        {"scenario": declared, "left": tank(1), "right": tank(2), "folder": {"files": {}}}
    )
    names = [spec.name for spec in world.list_tools()]
    assert "left_read" in names
    assert "read" not in names
    assert "read_file" in names
    assert call(world, "right_read") == {"level": 2}


def test_a_seat_reads_its_own_messages_only() -> None:
    world, _ = scenario(
        {"name": "one", "at_s": 5, "message": "For a.", "to": "a"},
        {"name": "all", "at_s": 6, "message": "For all."},
    )
    world.pass_us(10_000_000)
    texts = {
        seat: [item["text"] for item in call(world.seat(seat), "now")["messages"]]
        for seat in ("a", "b")
    }
    assert texts == {"a": ["For a.", "For all."], "b": ["For all."]}


@pytest.fixture
def clock() -> Clock:
    """A clock that always returns 0."""

    class _Still:
        def now_ns(self) -> int:
            return 0

    return _Still()


def test_calls_take_the_time_of_their_tool_and_the_trace_states_it(clock: Clock) -> None:
    latency = {"*": {"fixed_ms": 250}, "wait": {"fixed_ms": 0}, "add": {"uniform_ms": [1000, 9000]}}
    spec = episode_spec(world="scenario", state=state(latency=latency), steps=9, calls=9)
    recorder = MemoryRecorder()
    episode = Native().open_episode(spec, recorder, clock)
    (seat,) = episode.seats
    seat.call("read", {})
    seat.call("add", {"litres": 1})
    seat.call("add", {"litres": 1})
    times = [event.at_ms for event in recorder.events if isinstance(event, CallMade)]
    assert times[0] == 250
    assert times[1] is not None
    assert times[2] is not None
    durations = [times[1] - 250, times[2] - times[1]]
    assert all(1000 <= duration <= 9000 for duration in durations)
    assert durations[0] != durations[1], "the same call is drawn anew"


def test_tokens_of_a_model_take_time_with_the_next_call() -> None:
    world, _ = scenario(token_us=1_500_000, latency={"*": {"fixed_ms": 250}})
    layer = TakeTime(world, KeyedRandom(1))
    layer.add_tokens(2)
    layer.add_tokens(4)
    layer.around(ToolCall("read", {}), world.call)
    assert world.now_ms == 9250
    layer.around(ToolCall("read", {}), world.call)
    assert world.now_ms == 9500


def test_recorded_tokens_take_time_with_the_call_that_they_precede() -> None:
    world, _ = scenario(token_us=1_000_000)
    recorded = [(1, 5), (3, 20), (3, 30), (4, 40)]
    layer, times = TakeTime(world, KeyedRandom(1), recorded), []
    for number in range(1, 5):
        layer.around(ToolCall("read", {}, number), world.call)
        times.append(world.now_ms)
    assert times == [5000, 5000, 55_000, 95_000]


def test_calls_without_latency_and_tokens_take_no_time() -> None:
    world, _ = scenario(token_us=1)
    layer = TakeTime(world, KeyedRandom(1))
    layer.add_tokens(1)
    for _ in range(3):
        layer.around(ToolCall("read", {}), world.call)
    assert world.now_us == 1


def test_a_price_is_charged_and_an_exhausted_budget_admits_no_further_call(clock: Clock) -> None:
    prices = {"add": 400}
    priced = state(price_microusd=prices)
    spec = episode_spec(world="scenario", state=priced, steps=9, calls=9, tool_microusd=1000)
    recorder = MemoryRecorder()
    (seat,) = Native().open_episode(spec, recorder, clock).seats
    assert isinstance(seat.call("add", {"litres": 1}).result, Value)
    assert isinstance(seat.call("read", {}).result, Value)
    assert isinstance(seat.call("add", {"litres": 1}).result, Value)
    assert not isinstance(seat.call("add", {"litres": 1}).result, Value)


@pytest.mark.parametrize(("continues", "level"), [(True, 60), (False, 0)])
def test_a_scenario_goes_on_after_the_agents_have_ended(
    clock: Clock, continues: bool, level: int
) -> None:
    rising = {"name": "rise", "every_s": 60, "rules": rise()}
    spec = episode_spec(world="scenario", state=state(rising, continues=continues))
    episode = Native().open_episode(spec, MemoryRecorder(), clock)
    episode.seats[0].answer("done")
    episode.close()
    assert episode.world.state["tank"]["level"] == level  # type: ignore[index, call-overload]


def test_a_day_with_many_events_takes_little_time() -> None:
    began = time.process_time()
    world, events = scenario({"name": "rise", "every_s": 432, "rules": rise()}, end_s=86_400)
    call(world, "wait", seconds=86_400)
    assert len(events) == 200
    assert time.process_time() - began < 2.0, "processor time, which other jobs do not change"


durations = st.one_of(
    st.builds(lambda ms: {"fixed_ms": ms}, st.integers(0, 10**6)),
    st.builds(
        lambda low, more: {"uniform_ms": [low, low + more]},
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    st.builds(
        lambda median, sigma: {"median_ms": median, "sigma": sigma},
        st.integers(0, 10**6),
        st.floats(0, 5),
    ),
    st.builds(lambda samples: {"samples_ms": samples}, st.lists(st.integers(0, 10**6), min_size=1)),
)


@given(durations, st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_a_latency_is_a_quantile_function(value: Any, low: float, high: float) -> None:
    latency = latency_of(value, "latency")
    low, high = sorted((low, high))
    assert 0 <= latency.at(low) <= latency.at(high)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_many_short_waits_and_one_long_wait_reach_the_same_state(waits: list[int]) -> None:
    events = (
        {"name": "rise", "every_s": 60, "rules": rise()},
        {"name": "drain", "when": at_least(3), "rules": rise(-3), "repeat": True},
    )
    many, events_of_many = scenario(*events, end_s=86_400)
    single, events_of_single = scenario(*events, end_s=86_400)
    for seconds in waits:
        call(many, "wait", seconds=seconds)
    call(single, "wait", seconds=sum(waits))
    assert many.state == single.state
    assert events_of_many == events_of_single


def broken_limits(*changes: tuple[float, int], for_s: float | None = None) -> list[float]:
    """Return when a limit of at most 9 litres was violated.

    Args:
        changes: seconds after the start, and litres that a call adds then.
        for_s: how long the limit may be broken.
    """
    limit: dict[str, Any] = {
        "name": "limit:full",
        "unless": {"op": "at_most", "path": "tank.level", "value": 9},
        "repeat": True,
    }
    world, events = scenario(limit if for_s is None else {**limit, "for_s": for_s})
    for at_s, litres in changes:
        if at_s > world.now_ms / 1000:
            call(world, "wait", seconds=at_s - world.now_ms / 1000)
        call(world, "add", litres=litres)
    world.advance_to(3_600_000_000, stop=lambda: False)
    return [event.at_ms / 1000 for event in events if event.had_effect]


def test_a_limit_is_violated_each_time_that_it_is_broken() -> None:
    assert broken_limits((10, 9)) == []
    assert broken_limits((10, 10)) == [10]
    assert broken_limits((10, 10), (20, -1), (30, 1), (40, 1)) == [10, 30]


def test_a_limit_can_be_broken_for_some_time() -> None:
    assert broken_limits((10, 10), (70, -1), for_s=60) == []
    assert broken_limits((10, 10), (70.001, -1), for_s=60) == [70.001]
    assert broken_limits((10, 10), (40, -1), (50, 1), (100, -1), for_s=60) == []
    assert broken_limits((10, 10), (40, -1), (50, 1), for_s=60) == [110.001]
    assert broken_limits((3590, 10), for_s=60) == []


def test_a_limit_is_broken_if_its_value_is_gone() -> None:
    world, events = scenario(
        {"name": "gone", "at_s": 5, "rules": [{"op": "delete", "path": "tank.level"}]},
        {"name": "limit:full", "unless": at_least(0), "repeat": True},
    )
    world.advance_to(10_000_000, stop=lambda: False)
    assert [event.name for event in events] == ["gone", "limit:full"]
