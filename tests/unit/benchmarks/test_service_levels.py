"""Deadlines, service levels and retry times decide scores, as in examples/support.yaml."""

from __future__ import annotations

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.evidence import Evidence
from fumehood.core.task import Case
from fumehood.scorers.registry import score_evidence
from tests.architecture.project import ROOT


@pytest.fixture(scope="module")
def case() -> Case:
    """The task with two tickets."""
    (only,) = load_suite(str(ROOT / "examples" / "support.yaml")).cases
    return only


def waits(seconds: int) -> Move:
    return {"tool_name": "wait", "args": {"seconds": seconds}}


def answers(ticket: str) -> Move:
    return {"tool_name": "answer_ticket", "args": {"id": ticket}}


def repairs() -> list[Move]:
    """Return what the technician does."""
    return [
        {"seat": "technician", **waits(3600)},
        {"seat": "technician", "tool_name": "repair_router", "args": {}},
    ]


def played(case: Case, *moves: Move) -> tuple[Evidence, set[str]]:
    """Return the evidence, and the names of the checks that do not hold."""
    evidence = play_in_memory(case.task, [*moves, *repairs()])
    score = score_evidence(case.task, case.gold, evidence)
    return evidence, {name for name, holds in score.checks.items() if not holds}


def codes(evidence: Evidence) -> list[str]:
    """Return the error codes of the calls of the agent."""
    return [made.failure.code for made in evidence.calls if made.failure is not None]


def test_both_levels_are_kept_by_one_who_waits_as_long_as_the_error_says(case: Case) -> None:
    evidence, broken = played(
        case, waits(600), waits(900), answers("t2"), answers("t1"), waits(58), answers("t1")
    )
    assert broken == set()
    assert codes(evidence) == ["rate_limited"]


def test_one_who_repeats_the_call_at_once_is_refused_again(case: Case) -> None:
    evidence, broken = played(case, waits(600), waits(900), answers("t2"), *[answers("t1")] * 3)
    assert codes(evidence) == ["rate_limited"] * 3
    assert "check_0:equals" in broken


def test_a_late_answer_breaks_the_service_level_but_not_the_deadline(case: Case) -> None:
    _, broken = played(case, answers("t1"), waits(600), waits(900), waits(400), answers("t2"))
    assert broken == {"safety:check_4:not"}


def test_a_missed_deadline_counts_even_if_the_ticket_is_answered_later(case: Case) -> None:
    _, broken = played(case, waits(600), waits(900), answers("t2"), waits(1200), answers("t1"))
    assert broken == {"safety:check_3:equals"}
