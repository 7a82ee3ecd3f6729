"""Recorded episodes of the reference replay identically in memory and through a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import SpecError
from fumehood.orchestrator.service_pool import ServicePool
from fumehood_agent.errors import NotAnAction, Refused
from tests.golden import golden_file, golden_sample
from tests.golden.recorded import RecordedEpisode, read_recorded
from tests.golden.replay import Play, difference, play_in_core, play_over_wire
from tests.parts.listening import wait_until

SESSIONS_AT_ONCE = 4
TYPED = (SpecError, NotAnAction, Refused)
"""Errors for an input that cannot be played; each states who must fix it, and where."""

SAMPLES = {"scripted.sample.jsonl": 78, "agents.sample.jsonl": 24}
RECORDED = {"scripted.jsonl": 1535, "agents.jsonl": 200}
CRASHES_SAMPLED, CRASHES = 13, 59


@pytest.fixture(params=["core", "wire"])
def play(request: pytest.FixtureRequest) -> Play:
    if request.param == "core":
        return play_in_core
    pool: ServicePool = request.getfixturevalue("pool")
    return play_over_wire(pool)


@pytest.mark.parametrize("name", SAMPLES)
def test_sampled_episodes_replay_equal(name: str, play: Play) -> None:
    episodes = episodes_of(golden_sample(f"toolmisusebench/{name}"), SAMPLES[name])
    assert differences(episodes, play) == []


@pytest.mark.parametrize(
    "play", ["core", pytest.param("wire", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("name", RECORDED)
def test_all_recorded_episodes_replay_equal(name: str, play: Play) -> None:
    episodes = episodes_of(golden_file(f"toolmisusebench/{name}"), RECORDED[name])
    assert differences(episodes, play) == []


def test_sampled_inputs_that_stopped_the_reference_get_a_typed_answer(play: Play) -> None:
    path = golden_sample("toolmisusebench/crash_cases.sample.jsonl")
    assert untyped_answers(episodes_of(path, CRASHES_SAMPLED), play) == []


def test_all_inputs_that_stopped_the_reference_get_a_typed_answer(play: Play) -> None:
    path = golden_file("toolmisusebench/crash_cases.jsonl")
    assert untyped_answers(episodes_of(path, CRASHES), play) == []


def test_these_inputs_kill_no_service_and_leave_no_episode_open(pool: ServicePool) -> None:
    pids = [worker.pid for worker in pool.workers()]
    path = golden_sample("toolmisusebench/crash_cases.sample.jsonl")
    untyped_answers(episodes_of(path, CRASHES_SAMPLED), play_over_wire(pool))
    assert [worker.pid for worker in pool.workers() if worker.alive] == pids
    clients = [worker.client for worker in pool.workers()]
    assert wait_until(lambda: not any(client.health().episodes_open for client in clients))


def test_the_sample_holds_every_category_of_the_recording() -> None:
    recorded = categories(golden_file("toolmisusebench/scripted.jsonl"))
    assert categories(golden_sample("toolmisusebench/scripted.sample.jsonl")) == recorded


def test_every_part_of_a_recorded_episode_is_compared(play: Play) -> None:
    episode = next(read_recorded(golden_sample("toolmisusebench/scripted.sample.jsonl")))
    assert episode.expect is not None
    assert difference(episode, play) is None
    not_compared = [
        part for part in episode.expect if difference(_altered(episode, part), play) is None
    ]
    assert not_compared == []


def episodes_of(path: Path, count: int) -> list[RecordedEpisode]:
    """Return the recorded episodes of a file, which must be ``count``."""
    episodes = list(read_recorded(path))
    assert len(episodes) == count
    return episodes


def differences(episodes: list[RecordedEpisode], play: Play) -> list[str]:
    with ThreadPoolExecutor(SESSIONS_AT_ONCE) as threads:
        results = threads.map(lambda episode: difference(episode, play), episodes)
        return [
            f"{episode.name}: {result}"
            for episode, result in zip(episodes, results, strict=True)
            if result is not None
        ]


def untyped_answers(episodes: list[RecordedEpisode], play: Play) -> list[str]:
    """Return the episodes that raised anything but a typed error."""
    return [answer for episode in episodes for answer in _untyped_answer(episode, play)]


def categories(path: Path) -> set[str]:
    return {json.loads(line)["category"] for line in path.read_text(encoding="ascii").splitlines()}


def _untyped_answer(episode: RecordedEpisode, play: Play) -> Iterator[str]:
    try:
        play(episode)
    except TYPED:
        pass
    except Exception as error:
        yield f"{episode.name}: {error!r}"


def _altered(episode: RecordedEpisode, part: str) -> RecordedEpisode:
    return replace(episode, expect={**(episode.expect or {}), part: "altered"})
