"""The reward of all steps of a task."""

from __future__ import annotations

import pytest

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Task
from fumehood.orchestrator.workspaces.steps import combined, is_reached
from fumehood.scorers.registry import empty
from fumehood.scorers.verdict import (
    VERDICT,
    WORKSPACE,
    Verdict,
    WorkspaceScorer,
    verdict_from_json,
)

NAMES = ("one", "two", "three")


@pytest.mark.parametrize(
    ("rewards", "threshold", "is_enough"),
    [
        ({"reward": 0.5}, None, True),
        ({"reward": 0.5}, 0.5, True),
        ({"reward": 0.5}, 1, False),
        ({"speed": 1.0}, 0, False),
        ({"reward": 0.0, "speed": 0.7}, {"speed": 0.7}, True),
        ({"speed": 0.7}, {"speed": 0.7, "size": -1}, False),
        ({}, 0, False),
    ],
)
def test_each_threshold_needs_its_reward(
    rewards: dict[str, float], threshold: Json, is_enough: bool
) -> None:
    assert is_reached(Verdict(rewards), threshold) is is_enough


def test_a_reward_is_the_mean_and_a_missing_one_counts_as_zero() -> None:
    verdicts = [
        Verdict({"reward": 1.0, "speed": 0.5}),
        Verdict({"reward": 0.5}),
        Verdict(problem="x"),
    ]
    verdict = combined(NAMES, verdicts, None)
    assert verdict.rewards == {"reward": 0.5, "speed": pytest.approx(1 / 6)}
    assert verdict.problem == ""
    assert [line for line in verdict.output.splitlines() if line] == [
        "step one: reward 1, speed 0.5",
        "step two: reward 0.5",
        "step three: x",
    ]
    assert verdict.steps == tuple(zip(NAMES, verdicts, strict=True))
    assert verdict_from_json(verdict.to_json()) == verdict


def test_the_last_step_can_decide_alone() -> None:
    verdicts = [Verdict({"reward": 0.0}), Verdict({"reward": 1.0})]
    assert combined(NAMES[:2], verdicts, "final").rewards == {"reward": 1.0}


def test_a_last_step_that_is_not_reached_counts_as_zero() -> None:
    first = Verdict({"reward": 0.9, "speed": 1.0}, output="1 passed")
    assert not is_reached(first, 0.95)
    verdict = combined(NAMES, [first], "final")
    assert verdict.rewards == {"reward": 0.0, "speed": 0.0}
    assert verdict.steps == (("one", first),)


@pytest.mark.parametrize("strategy", ["final", "mean"])
@pytest.mark.parametrize(
    ("verdicts", "success"),
    [
        ([Verdict({"reward": 3.0})], False),
        ([Verdict({"reward": 3.0}), Verdict(problem="the agent ended before this step")], False),
        ([Verdict({"reward": 3.0}), Verdict({"reward": 1.0})], True),
    ],
)
def test_a_task_with_an_unreached_step_is_no_success(
    strategy: str, verdicts: list[Verdict], success: bool
) -> None:
    names = ("one", "two")
    verdict = combined(names, verdicts, strategy)
    task = Task(
        task_id="t",
        world="workspace",
        harness_mode="native",
        initial_state={},
        seats=(SeatSpec(instruction="x", budget=Budget(steps=1)),),
    )
    settings: JsonObject = {"op": WORKSPACE, "steps": [{"name": name} for name in names]}
    gold = Gold("workspace", (settings, {"op": VERDICT, **verdict.to_json()}))
    assert WorkspaceScorer().score(task, gold, empty(task)).success is success


def test_a_task_without_any_reward_states_the_first_problem() -> None:
    verdict = combined(NAMES, [Verdict(problem="no reward"), Verdict(problem="late")], "mean")
    assert (verdict.rewards, verdict.problem) == ({}, "no reward")
