"""Scores an episode in a workspace by the verdict of its verifier.

A verifier runs in its own box. Tests that run inside the workspace give a reward that an agent can
forge; it is marked as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.score import Score
from fumehood.core.task import Case, Task
from fumehood.scorers.native import NativeScorer, task_metrics

WORKSPACE = "workspace"
"""Criterion: how the workspace of a task is verified. Settings for the orchestrator."""
SHARED_TESTS = "shared"
"""Value of the setting ``verification`` of a task whose tests run only inside its workspace."""
TERMINALS = "terminals"
"""Setting of a task: true if its boxes have pseudo-terminals."""
VERDICT = "verdict"
"""Criterion that the orchestrator adds after the verification."""
VERIFIER = "verifier"
"""Metric: the verdict."""
REWARD = "reward"
FORGEABLE_REWARD = "forgeable_reward"
"""Metric: the reward of tests that ran inside the workspace, after the verdict of the verifier."""
FORGEABLE_DIFFERENCE = "forgeable_difference"
"""Metric: the forgeable reward minus the reward."""
VERIFICATION = "verification"
"""Metric: :data:`SHARED` if tests inside the workspace decided the score."""
SHARED = "shared, forgeable"
AGENT_BOX = "agent_box"
"""Metric: :data:`SHARED_BOX` if the agent ran inside the workspace."""
SHARED_BOX = "shared"
LAST_STEP = "last_step"
"""Check: whether a task with steps has a reward of its last step; only if it has none."""
SUCCESS = 1.0
"""Reward of a solved task."""


MARKS = (AGENT_BOX, VERIFICATION, FORGEABLE_REWARD, FORGEABLE_DIFFERENCE)
"""Metrics that exports state beside a score."""


def marks_of(metrics: Mapping[str, Json]) -> JsonObject:
    """Return the marks that must accompany a score in a workspace; empty for most scores."""
    return {name: metrics[name] for name in MARKS if name in metrics}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier wrote."""

    rewards: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""
    """Why there are no rewards."""
    output: str = ""
    """The end of its output."""
    files: int = 0
    """Files that it got from the workspace."""
    left_out: int = 0
    """Links, devices and files that it did not get."""
    is_shared: bool = False
    """Whether it ran inside the workspace, where an agent can forge its rewards."""
    shared: Verdict | None = None
    """The verdict of the same tests inside the workspace; None if they did not run there."""
    changed: tuple[str, ...] | None = None
    """Files that an agent inside the workspace changed, as far as they are listed; None if the
    agent had another box."""
    steps: tuple[tuple[str, Verdict], ...] = ()
    """Name and verdict of each step that counts; empty for a task without steps."""
    checkpoint: str = ""
    """Digest of the kept workspace, or ``none: REASON``; empty if the run keeps none."""

    @property
    def reward(self) -> float:
        """The reward of that name, or else the lowest one; 0 without rewards."""
        return self.rewards.get(REWARD, min(self.rewards.values(), default=0.0))

    def to_json(self) -> JsonObject:
        """Return the fields; those of steps and of tests inside the workspace only if there are
        any."""
        return {
            **({"is_shared": True} if self.is_shared else {}),
            **({"shared": self.shared.to_json()} if self.shared else {}),
            **({"changed": list(self.changed)} if self.changed is not None else {}),
            **(
                {"steps": [{"step": name, **verdict.to_json()} for name, verdict in self.steps]}
                if self.steps
                else {}
            ),
            **({"checkpoint": self.checkpoint} if self.checkpoint else {}),
            "rewards": {**self.rewards},
            "problem": self.problem,
            "output": self.output,
            "files": self.files,
            "left_out": self.left_out,
        }


def with_verdict(case: Case, verdict: Verdict | None) -> Case:
    """Return a case whose gold contains the verdict of its verifier."""
    if verdict is None:
        return case
    criterion: JsonObject = {"op": VERDICT, **verdict.to_json()}
    return replace(case, gold=replace(case.gold, criteria=(*case.gold.criteria, criterion)))


def verdict_from_json(value: Json) -> Verdict | None:
    """Return what :meth:`Verdict.to_json` wrote; None for another form."""
    match value:
        case {
            "rewards": dict(rewards),
            "problem": str(problem),
            "output": str(output),
            "files": int(files),
            "left_out": int(left_out),
        }:
            numbers = {name: float(str(number)) for name, number in rewards.items()}
            assert isinstance(value, dict)
            is_shared = value.get("is_shared") is True
            shared = verdict_from_json(value.get("shared"))
            listed = value.get("changed")
            changed = tuple(map(str, listed)) if isinstance(listed, list) else None
            steps, kept = _steps(value.get("steps")), str(value.get("checkpoint", ""))
            return Verdict(
                *(numbers, problem, output, files, left_out, is_shared, shared, changed, steps),
                checkpoint=kept,
            )
    return None


def _steps(listed: Json) -> tuple[tuple[str, Verdict], ...]:
    values = listed if isinstance(listed, list) else []
    return tuple(
        (str(value.get("step")), verdict)
        for value in values
        if isinstance(value, dict) and (verdict := verdict_from_json(value)) is not None
    )


class WorkspaceScorer:
    """Success means that every reward is at least 1 and that the last step has a reward. Other
    criteria are those of native tasks."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score; ungraded if no verifier ran."""
        verdict = verdict_from_json(dict(gold.criterion(VERDICT) or {}))
        if gold.criterion(WORKSPACE) is None:
            return NativeScorer().score(task, gold, evidence)
        if verdict is None:
            return Score(None, {}, {"ungraded": "no verifier ran"})
        checks = {name: number >= SUCCESS for name, number in verdict.rewards.items()}
        if not checks:
            checks = {REWARD: False}
        if not _is_last_step_reached(gold.criterion(WORKSPACE), verdict):
            checks[LAST_STEP] = False
        success = all(checks.values())
        metrics: JsonObject = {REWARD: verdict.reward, VERIFIER: verdict.to_json()}
        if verdict.is_shared:
            metrics[VERIFICATION] = SHARED
        if verdict.changed is not None:
            metrics[AGENT_BOX] = SHARED_BOX
        if verdict.shared is not None:
            metrics[FORGEABLE_REWARD] = verdict.shared.reward
            metrics[FORGEABLE_DIFFERENCE] = verdict.shared.reward - verdict.reward
        return Score(success, checks, {**task_metrics(task, evidence, success), **metrics})


def _is_last_step_reached(settings: Mapping[str, Json] | None, verdict: Verdict) -> bool:
    """Return whether the tests of the last step wrote a reward; also true without steps.

    Args:
        settings: of the criterion :data:`WORKSPACE`.
        verdict: of the task.
    """
    steps = (settings or {}).get("steps")
    if not isinstance(steps, list) or not steps:
        return True
    return len(verdict.steps) == len(steps) and bool(verdict.steps[-1][1].rewards)
