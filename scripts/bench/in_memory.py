"""The layered toolset in memory: the cost of all layers per call, and episodes per second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fumehood.core.clock import StoppedClock
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.ledger import Budget
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Case
from fumehood.core.tools import ToolCall
from fumehood.core.virtual_time import WorldEvent
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.service.trace_stream import TraceStream
from fumehood.testing.memory_seat import MemorySeat
from fumehood.worlds.registry import WORLDS
from fumehood_agent.adapter import work
from fumehood_agent.loading import load_agent
from scripts.bench.measure import Figure, best_of, timed
from scripts.bench.workload import endless_case

CALLS = 5000
DAY_S, DAY_EVENTS, DAY_WALL_S_MAX = 86_400, 200, 2.0
LAYERS_US_MAX = 50
REFERENCE_EPISODES_PER_S = 4223
"""The reference harness, everything in one process, on one core of a machine of this size."""


def layers_cost() -> Iterator[Figure]:
    """Yield the cost of a call beyond that of the world, with five armed faults and a trace."""
    for harness_mode in sorted(HARNESS_MODES):
        with_layers = best_of(5, partial(_calls_through_layers, harness_mode))
        bare = best_of(5, _calls_on_world)
        cost_us = (with_layers - bare) / CALLS * 1e6
        goal = f"at most {LAYERS_US_MAX} µs"
        yield Figure(
            f"all layers, per call, {harness_mode}",
            f"{cost_us:.1f} µs",
            goal,
            cost_us <= LAYERS_US_MAX,
        )


def episodes_in_memory(cases: Sequence[Case]) -> Iterator[Figure]:
    """Yield the rate of whole episodes of ``schema_repair``."""
    per_s = in_memory_per_s(cases)
    yield Figure(
        "episodes in memory",
        f"{per_s:,.0f}/s",
        f"beat {REFERENCE_EPISODES_PER_S:,}/s (recorded)",
        per_s > REFERENCE_EPISODES_PER_S,
    )


def scenario_day() -> Iterator[Figure]:
    """Yield the wall time of a day of virtual time with 200 events and 24 calls."""
    event: JsonObject = {"name": "tick", "every_s": DAY_S // DAY_EVENTS, "message": "Tick."}
    time: JsonObject = {"start": "2026-03-02T00:00:00Z", "end_s": DAY_S}
    time["latency"] = {"*": {"fixed_ms": 50}}
    state: JsonObject = {
        "scenario": {"parts": {"folder": "files"}, "time": time, "events": [event]},
        "folder": {"files": {}},
    }
    spec = EpisodeSpec(
        episode_id="bench",
        world="scenario",
        harness_mode="native",
        initial_state=state,
        fault_plan=(),
        seed=1,
        seats=(SeatSpec(instruction="Wait.", budget=Budget()),),
    )

    def play() -> None:
        recorder = MemoryRecorder()
        episode = HARNESS_MODES.load("native")().open_episode(spec, recorder, StoppedClock())
        for _ in range(DAY_EVENTS):
            episode.seats[0].call("wait", {"seconds": 3600})
        episode.close()
        assert sum(isinstance(made, WorldEvent) for made in recorder.events) == DAY_EVENTS

    took_s = best_of(3, lambda: timed(play))
    yield Figure(
        f"scenario of 24 hours, {DAY_EVENTS} events and calls",
        f"{took_s:.2f} s",
        f"at most {DAY_WALL_S_MAX:g} s",
        took_s <= DAY_WALL_S_MAX,
    )


def in_memory_per_s(cases: Sequence[Case]) -> float:
    """Return the episodes per second in this process, without a service."""
    return len(cases) / best_of(3, lambda: timed(lambda: _play_all(cases)))


def _play_all(cases: Sequence[Case]) -> None:
    agent = load_agent("builtin:schema_repair")
    for case in cases:
        harness_mode = HARNESS_MODES.load(case.task.harness_mode)()
        spec = PlannedEpisode("bench", case, 0, case.task.seed).to_spec(60_000)
        episode = harness_mode.open_episode(spec, MemoryRecorder(), StoppedClock())
        work(agent, MemorySeat(episode.seats[0]))
        episode.close()


_ARGUMENTS: dict[str, Json] = {"id": "acct3"}


def _calls_through_layers(harness_mode: str) -> float:
    spec = PlannedEpisode("bench", endless_case(), 0, 1).to_spec(60_000)
    mode = HARNESS_MODES.load(harness_mode)()
    seat = mode.open_episode(spec, TraceStream(), StoppedClock()).seats[0]
    return _time_of_calls(lambda: seat.call("get_account", _ARGUMENTS))


def _calls_on_world() -> float:
    world = WORLDS.load("crud")(copy_object(endless_case().task.initial_state))
    return _time_of_calls(lambda: world.call(ToolCall("get_account", _ARGUMENTS)))


def _time_of_calls(call: Callable[[], object]) -> float:
    return timed(lambda: [call() for _ in range(CALLS)])
