"""What the reference did, recorded: every vector replays equal, at the core and through a real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.errors import SpecError
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.vectors.record import Vector, read_vectors
from fumehood.vectors.replay import Replay, check
from fumehood.vectors.via_core import ViaCore
from fumehood.vectors.via_wire import ViaWire
from fumehood_agent.errors import NotAnAction, Refused
from tests.golden import golden_file, golden_sample

SESSIONS_AT_ONCE = 4
TYPED = (SpecError, NotAnAction, Refused)
"""What an input that cannot be played is answered with: who must mend it, and where."""

SAMPLES = {"scripted.sample.jsonl": 78, "agents.sample.jsonl": 24}
RECORDED = {"scripted.jsonl": 1535, "agents.jsonl": 200}
CRASHES_SAMPLED, CRASHES = 13, 59


@pytest.fixture(params=["core", "wire"])
def replay(request: pytest.FixtureRequest) -> Replay:
    """Both depths."""
    if request.param == "core":
        return ViaCore()
    pool: ServicePool = request.getfixturevalue("pool")
    return ViaWire(pool)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_replay_equal(name: str, replay: Replay) -> None:
    vectors = vectors_of(golden_sample(f"toolmisusebench/{name}"), SAMPLES[name])
    assert differences(vectors, replay) == []


@pytest.mark.parametrize("name", RECORDED)
def test_everything_recorded_replays_equal(name: str, replay: Replay) -> None:
    vectors = vectors_of(golden_file(f"toolmisusebench/{name}"), RECORDED[name])
    assert differences(vectors, replay) == []


def test_sampled_inputs_that_stopped_the_reference_get_a_typed_answer(replay: Replay) -> None:
    path = golden_sample("toolmisusebench/crash_cases.sample.jsonl")
    assert untyped_answers(vectors_of(path, CRASHES_SAMPLED), replay) == []


def test_all_inputs_that_stopped_the_reference_get_a_typed_answer(replay: Replay) -> None:
    path = golden_file("toolmisusebench/crash_cases.jsonl")
    assert untyped_answers(vectors_of(path, CRASHES), replay) == []


def test_no_service_dies_of_them_and_no_episode_stays_open(pool: ServicePool) -> None:
    pids = [worker.pid for worker in pool.workers()]
    path = golden_sample("toolmisusebench/crash_cases.sample.jsonl")
    untyped_answers(vectors_of(path, CRASHES_SAMPLED), ViaWire(pool))
    assert [worker.pid for worker in pool.workers() if worker.alive] == pids
    assert [worker.client.health().episodes_open for worker in pool.workers()] == [0, 0]


def test_the_sample_holds_every_category_of_the_recording() -> None:
    recorded = categories(golden_file("toolmisusebench/scripted.jsonl"))
    assert categories(golden_sample("toolmisusebench/scripted.sample.jsonl")) == recorded


def test_every_part_of_a_recording_is_compared(replay: Replay) -> None:
    path = golden_sample("toolmisusebench/scripted.sample.jsonl")
    vector = next(read_vectors(path))
    assert vector.expect is not None
    assert check(vector, replay).difference is None
    unnoticed = [
        part for part in vector.expect if check(_altered(vector, part), replay).difference is None
    ]
    assert unnoticed == []


def vectors_of(path: Path, count: int) -> list[Vector]:
    """Return the vectors of a file, having seen that it is whole."""
    vectors = list(read_vectors(path))
    assert len(vectors) == count
    return vectors


def differences(vectors: list[Vector], replay: Replay) -> list[str]:
    """Return where any vector differs."""
    with ThreadPoolExecutor(SESSIONS_AT_ONCE) as threads:
        verdicts = threads.map(lambda vector: check(vector, replay), vectors)
        return [
            f"{verdict.vector_id}: {verdict.difference}"
            for verdict in verdicts
            if verdict.difference
        ]


def untyped_answers(vectors: list[Vector], replay: Replay) -> list[str]:
    """Return the vectors that were answered with something other than replies or a typed error."""
    return [answer for vector in vectors for answer in _untyped_answer(vector, replay)]


def categories(path: Path) -> set[str]:
    """Return the categories of the vectors of a file."""
    return {json.loads(line)["category"] for line in path.read_text(encoding="ascii").splitlines()}


def _untyped_answer(vector: Vector, replay: Replay) -> Iterator[str]:
    try:
        replay.play(vector)
    except TYPED:
        pass
    except Exception as error:
        yield f"{vector.vector_id}: {error!r}"


def _altered(vector: Vector, part: str) -> Vector:
    return replace(vector, expect={**(vector.expect or {}), part: "altered"})
