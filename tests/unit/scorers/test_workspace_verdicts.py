"""The score of a workspace without a reward."""

from __future__ import annotations

from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.scorers.failed import failed_score
from fumehood.scorers.registry import empty
from fumehood.scorers.verdict import VERDICT, WORKSPACE, Verdict, WorkspaceScorer
from tests.unit.scorers.answered_calls import evidence, task

SETTINGS: JsonObject = {"op": WORKSPACE}


def test_a_verdict_without_rewards_is_a_failure_that_states_only_its_problem() -> None:
    verdict: JsonObject = {"op": VERDICT, **Verdict(problem="no reward file").to_json()}
    score = WorkspaceScorer().score(task(), Gold("workspace", (SETTINGS, verdict)), empty(task()))
    assert score.success is False
    assert score.metrics["reward"] == 0
    assert score.metrics["verifier"] == {
        "rewards": {},
        "problem": "no reward file",
        "output": "",
        "files": 0,
        "left_out": 0,
    }


def test_an_attempt_that_cannot_be_scored_has_the_reward_zero() -> None:
    score = failed_score(task(), Gold("workspace", (SETTINGS,)), evidence(), "scorable")
    assert (score.success, score.metrics["reward"]) == (False, 0)
