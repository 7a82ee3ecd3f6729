"""The requirements of every scorer, as tests.

A test module imports all names of this module and defines the fixture ``scorer``, and ``criteria``:
one that holds after one successful call, which closes the account a1, and one that does not hold.
"""

from __future__ import annotations

import copy

from fumehood.core.clock import StoppedClock
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.ledger import Budget
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished
from fumehood.core.task import Task
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.scorers.registry import Scorer

Criteria = tuple[JsonObject, JsonObject]
TASK = Task(
    task_id="close",
    world="crud",
    harness_mode="native",
    initial_state={"accounts": {"a1": {"id": "a1", "status": "open"}}},
    seed=1,
    seats=(SeatSpec(instruction="Close the account a1.", budget=Budget(calls=2)),),
)


def evidence_of_one_call() -> Evidence:
    """Return the evidence of an episode that closes the account."""
    recorder = MemoryRecorder()
    mode = HARNESS_MODES.load(TASK.harness_mode)()
    episode = mode.open_episode(TASK.spec("e1"), recorder, StoppedClock())
    episode.seats[0].call("close_account", {"id": "a1", "reason": "asked"})
    episode.seats[0].finish(Finished("done"))
    episode.close()
    return read_evidence(recorder.written())


def test_scoring_is_deterministic_and_does_not_change_the_evidence(
    scorer: Scorer, criteria: Criteria
) -> None:
    evidence, gold = evidence_of_one_call(), Gold("tried", criteria[:1])
    before = copy.deepcopy(evidence)
    scores = [scorer.score(TASK, gold, evidence) for _ in range(2)]
    assert scores[0] == scores[1]
    assert evidence == before


def test_success_follows_the_criterion(scorer: Scorer, criteria: Criteria) -> None:
    evidence = evidence_of_one_call()
    for criterion, holds in zip(criteria, (True, False), strict=True):
        score = scorer.score(TASK, Gold("tried", (criterion,)), evidence)
        assert score.success is holds
        assert all(score.checks.values()) is holds


def test_a_task_without_criteria_is_not_a_success(scorer: Scorer, criteria: Criteria) -> None:
    assert scorer.score(TASK, Gold("tried", ()), evidence_of_one_call()).success is not True


def test_metrics_are_json(scorer: Scorer, criteria: Criteria) -> None:
    score = scorer.score(TASK, Gold("tried", criteria[:1]), evidence_of_one_call())
    canonical_json(dict(score.metrics))
    assert score.metrics["tool_calls"] == 1
