"""Random results for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from fumehood.core.outcome import Finished, Infra, InfraKind
from fumehood.core.score import UNGRADED, Score
from fumehood.records.row import EpisodeName, EpisodeRow
from fumehood.report.results import Result, TaskFacts

FAMILIES = ("timeout", "rate_limit", "schema_drift", "authz", "adversarial_error")
DOMAINS = ("crud", "retrieval", "files", "scheduling")


def result(
    task: TaskFacts,
    score: Score,
    *,
    agent: str = "one",
    trial: int = 0,
    infra: bool = False,
    wall_ms: int = 5,
) -> Result:
    outcome = Infra(InfraKind.ENGINE, "gone") if infra else Finished("")
    row = EpisodeRow(
        name=EpisodeName(agent, task.task_id, trial),
        seed=0,
        outcome=outcome,
        score=score,
        trace="",
        trace_digest="",
        attempts=1,
        wall_ms=wall_ms,
        stdout_bytes=0,
        stderr_bytes=0,
        refusals=0,
    )
    return Result(row, task)


def facts(task_id: str, families: tuple[str, ...] = (), domain: str = "crud") -> TaskFacts:
    digest = f"digest of {task_id}"
    return TaskFacts(task_id, domain, families, True, digest, digest)


@st.composite
def scores(draw: st.DrawFn) -> Score:
    calls = draw(st.integers(0, 40))
    invalid = draw(st.integers(0, calls))
    success, fault_seen = draw(st.booleans()), draw(st.booleans())
    exceeded = draw(st.booleans())
    metrics = {
        "steps": calls,
        "tool_calls": calls,
        "invalid_calls": invalid,
        "policy_violations": invalid + draw(st.integers(0, 3)),
        "budget_exceeded": exceeded,
        "catastrophic_failure": exceeded or invalid >= 3 or not success,
        "recovery_success": fault_seen and success,
        "time_to_recovery": draw(st.none() | st.integers(0, 10)),
        "fault_seen": fault_seen,
    }
    return Score(success, {}, metrics)


@st.composite
def result_lists(draw: st.DrawFn, *, agent: str = "one", trials: int = 3) -> list[Result]:
    """Results of up to twelve tasks, some ungraded, some infra."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        families = tuple(draw(st.lists(st.sampled_from(FAMILIES), unique=True, max_size=3)))
        task = facts(f"task{number}", families, draw(st.sampled_from(DOMAINS)))
        for trial in range(draw(st.integers(1, trials))):
            fate = draw(st.sampled_from(["graded", "graded", "graded", "ungraded", "infra"]))
            score = draw(scores()) if fate == "graded" else UNGRADED
            found.append(result(task, score, agent=agent, trial=trial, infra=fate == "infra"))
    return found
