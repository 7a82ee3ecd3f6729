"""Requirements of every scorer."""

from __future__ import annotations

import copy

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.core.clock import StoppedClock
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished
from fumehood.core.task import Case
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.scorers.registry import SCORERS

CASE = load_suite("sample").cases[0]
WALL_MS = 1000
EQUALS: JsonObject = {"op": "equals", "path": "accounts.a1042.status", "value": "closed"}

CRITERIA: dict[str, tuple[JsonObject, JsonObject]] = {}
"""Scorer → a criterion that holds on the evidence, and one that does not; ``equals`` by default."""


def _criteria(name: str) -> tuple[JsonObject, JsonObject]:
    return CRITERIA.get(name, (EQUALS, {**EQUALS, "value": "open"}))


each_scorer = pytest.mark.parametrize("name", list(SCORERS))


def _evidence(case: Case) -> Evidence:
    recorder = MemoryRecorder()
    spec = PlannedEpisode("agent", case, 0, 1).to_spec(WALL_MS)
    episode = HARNESS_MODES.load("native")().open_episode(spec, recorder, StoppedClock())
    episode.seats[0].call("close_account", {"id": "a1042", "reason": "relocation"})
    episode.seats[0].finish(Finished("done"))
    episode.close()
    return read_evidence(recorder.written())


@each_scorer
def test_scoring_is_deterministic_and_does_not_change_the_evidence(name: str) -> None:
    evidence, gold = _evidence(CASE), Gold(name, _criteria(name)[:1])
    before = copy.deepcopy(evidence)
    scores = [SCORERS.load(name)().score(CASE.task, gold, evidence) for _ in range(2)]
    assert scores[0] == scores[1]
    assert evidence == before


@each_scorer
def test_success_follows_the_criterion(name: str) -> None:
    evidence = _evidence(CASE)
    for criterion, holds in zip(_criteria(name), (True, False), strict=True):
        score = SCORERS.load(name)().score(CASE.task, Gold(name, (criterion,)), evidence)
        assert score.success is holds
        assert all(score.checks.values()) is holds


@each_scorer
def test_a_task_without_criteria_is_not_a_success(name: str) -> None:
    assert (
        SCORERS.load(name)().score(CASE.task, Gold(name, ()), _evidence(CASE)).success is not True
    )


@each_scorer
def test_metrics_are_json(name: str) -> None:
    score = SCORERS.load(name)().score(CASE.task, Gold(name, _criteria(name)[:1]), _evidence(CASE))
    canonical_json(dict(score.metrics))
    assert score.metrics["tool_calls"] == 1
