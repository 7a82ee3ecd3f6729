"""An agent that tosses a coin and tries to void each attempt that it has lost gains nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from pathlib import Path
from random import Random

import pytest

from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.task import Case, Suite
from fumehood.engines.engine import BoxOutput, Exit, ExitReason
from fumehood.orchestrator.config import JudgingConfig
from fumehood.orchestrator.episode_runner import Attempt, EpisodePlan, InlinePlan
from fumehood.orchestrator.judging import JudgeSource, RunJudge
from fumehood.orchestrator.plan import plan_episodes
from fumehood.orchestrator.run import Run, RunLimits, missing
from fumehood.orchestrator.stop_signals import StopRequests
from fumehood.records.run_folder import RunFolder
from fumehood.report.statistics.infra import attempts_of
from fumehood.service.inline import play_in_process
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood_agent.in_process import InProcessSession
from tests.parts.installed import installed

installed("bfcl_eval", "mpmath")

EPISODES = 300
HONEST_RATE = 0.417
RESUMES = 3
DIGITS = 10**4_199
WAYS: tuple[Callable[[InProcessSession], object], ...] = (
    # The product has more digits than Python writes.
    lambda session: session.call("multiply", {"a": DIGITS, "b": DIGITS}),
    lambda session: session.call("round_number", {"number": 1, "decimal_places": -(5 * 10**4)}),
    lambda session: session.call("logarithm", {"value": DIGITS, "base": 0, "precision": 1_000}),
    lambda session: session.call("\\x00" * 900, {"a": [[[]]]}),
)
"""Calls that raise exceptions in the world."""
pytestmark = pytest.mark.slow


class CoinFlipper:
    """Solves a task with a fixed probability; otherwise it tries to void its attempt."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._random = Random(1)
        self.attempts = 0

    def attempt(self, spec: EpisodeSpec, plan: EpisodePlan) -> Attempt:
        """Play one attempt, each with a new toss."""
        self.attempts += 1
        result = play_in_process(
            spec, {spec.seats[0].name: self._work}, MonotonicClock(), SeatLimits()
        )
        ended = Exit(result.exit_status, ExitReason.EXITED)
        return Attempt(result.records, ended, BoxOutput(b"", b"", 0, 0), None, 1)

    def _work(self, session: InProcessSession) -> None:
        if self._random.random() >= HONEST_RATE:
            self._random.choice(WAYS)(session)
            return
        for move in self._case.gold.oracle or ():
            if "submit" in move:
                session.submit(str(move["submit"]))
            else:
                session.call(str(move["tool_name"]), move["args"])  # type: ignore[arg-type]


def test_forced_infra_does_not_raise_the_success_rate(tmp_path: Path) -> None:
    case = next(
        case
        for case in Bfcl().load("multi_turn_base").cases
        if "MathAPI" in str(case.task.initial_state["involved_classes"])
    )
    cases = tuple(
        replace(case, task=replace(case.task, task_id=f"multi_turn_base_{number}"))
        for number in range(EPISODES)
    )
    suite = Suite("coins", cases)
    planned = list(plan_episodes(suite, ("coin",), 1, 0))
    folder, coin = (
        RunFolder.create(tmp_path / "run", {"run": "ab", "isolation": "none"}, suite),
        CoinFlipper(case),
    )
    judge = RunJudge(JudgeSource(None, JudgingConfig()), folder.path)
    limits = RunLimits(concurrency=1)
    run = Run(
        folder,
        coin.attempt,
        lambda _: InlinePlan(()),
        limits,
        judge,
        StopRequests(),
        lambda: None,
    )
    for _ in range(1 + RESUMES):
        run.execute(missing(planned, folder.rows()), lambda row: None)
    counted = attempts_of(folder.rows())
    assert (counted.graded, counted.ungraded, counted.infra) == (EPISODES, 0, 0)
    assert coin.attempts == EPISODES
    margin = 1.96 * sqrt(HONEST_RATE * (1 - HONEST_RATE) / EPISODES)
    assert abs(counted.successes / EPISODES - HONEST_RATE) <= margin
