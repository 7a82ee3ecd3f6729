"""An agent cannot leave its attempt ungraded by calls that its checker takes too long to repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.benchmarks.shared.in_memory import Move
from fumehood.core.task import Case
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.bounded_scoring import scoring_processes
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.scoring import PlayedAttempt, ScoredAttempt
from fumehood.service.inline import play_in_process
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.third_party.process import CPU_S_MAX
from fumehood_agent.in_process import InProcessSession
from tests.parts.installed import installed

installed("bfcl_eval", "mpmath")
pytestmark = pytest.mark.release

SLOW: Move = {"tool_name": "round_number", "args": {"number": 1, "decimal_places": -5_000_000}}
"""Takes about two seconds of processor time, in the world and again in the checker."""


def scored(case: Case, moves: Sequence[Move]) -> ScoredAttempt:
    """Play an episode in this process, and score it with BFCL's own checker."""
    spec = PlannedEpisode("agent", case, 0, 1).to_spec(3_600_000)

    def work(session: InProcessSession) -> None:
        for move in moves:
            if "submit" in move:
                session.submit(str(move["submit"]))
            else:
                session.call(str(move["tool_name"]), move["args"])  # type: ignore[arg-type]

    played = play_in_process(spec, {spec.seats[0].name: work}, MonotonicClock(), SeatLimits())
    left = Exit(0, ExitReason.EXITED)
    return scoring_processes().score(PlayedAttempt(case, played.records, left))


def test_calls_that_are_too_slow_for_the_checker_are_a_failure() -> None:
    case = next(
        case
        for case in Bfcl().load("multi_turn_base").cases
        if "MathAPI" in str(case.task.initial_state["involved_classes"])
    )
    oracle = list(case.gold.oracle or ())
    slow = scored(case, [*[SLOW] * (CPU_S_MAX // 2 + 3), *oracle])
    assert slow.score.success is False
    assert slow.score.checks == {"scorable": False}
    assert slow.score.metrics["not_scored"] == "error"
    assert scored(case, oracle).score.success is True, "the next attempt is scored"
