"""Requirements of every built-in agent, over the sample suite, at a seat in memory."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.core.clock import StoppedClock
from fumehood.core.json_values import JsonObject
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Case
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.testing.memory_seat import MemorySeat
from fumehood_agent.adapter import Ending, work
from fumehood_agent.builtin import BUILTIN, MANNERS, REPLAYING
from fumehood_agent.loading import load_agent, load_class

CASES = load_suite("sample").cases
WALL_MS = 60_000


def _agent(name: str, case: Case) -> Any:
    if name in MANNERS:
        return load_class(f"builtin:{name}")({"steps": list(case.gold.oracle or ())[-1:]})
    if name in REPLAYING:
        return load_class(f"builtin:{name}")([dict(step) for step in case.gold.oracle or ()])
    return load_agent(f"builtin:{name}")


def _play(agent: Any, case: Case) -> tuple[Ending, list[JsonObject]]:
    recorder = MemoryRecorder()
    harness_mode = HARNESS_MODES.load(case.task.harness_mode)()
    spec = PlannedEpisode("agent", case, 0, case.task.seed).to_spec(WALL_MS)
    episode = harness_mode.open_episode(spec, recorder, StoppedClock())
    ending = work(agent, MemorySeat(episode.seats[0]))
    assert episode.ended
    episode.close()
    return ending, list(recorder.written())


@pytest.mark.parametrize("name", BUILTIN)
def test_an_agent_ends_its_work_and_is_deterministic(name: str) -> None:
    for case in CASES:
        assert _play(_agent(name, case), case) == _play(_agent(name, case), case)


@pytest.mark.parametrize("name", sorted({*BUILTIN} - {*REPLAYING}))
def test_a_reset_agent_has_no_state(name: str) -> None:
    used = _agent(name, CASES[0])
    for case in CASES:
        assert _play(used, case) == _play(_agent(name, case), case)
