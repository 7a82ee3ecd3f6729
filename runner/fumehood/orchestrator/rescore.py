"""Scores a finished run again, from its traces and the kept replies of its judge."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.errors import InputError
from fumehood.core.outcome import AgentCrashed
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.bounded_scoring import scoring_processes
from fumehood.orchestrator.judging import RunJudge, judge_source
from fumehood.orchestrator.setup import config_of
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader


def rescore(folder: RunReader, judge: RunJudge | None = None) -> list[EpisodeRow]:
    """Return the rows of a run with outcome and score computed again from trace and gold.

    Args:
        folder: of the run.
        judge: answers what no rule decides; None for the kept replies of the run's own judge.

    Raises:
        InputError: a trace is missing, was changed, or belongs to no task of the suite.
    """
    cases = {case.task.task_id: case for case in folder.suite().cases}
    judge = judge or RunJudge(judge_source(config_of(folder), live=False), folder.path)
    rows = []
    for row in folder.rows():
        if not row.trace:
            rows.append(row)
            continue
        case = cases.get(row.name.task)
        if case is None:
            raise InputError(f"{row.name}: the run's suite has no such task")
        # The trace does not contain the exit of the process; the row does.
        ended = Exit(0, ExitReason.EXITED) if isinstance(row.outcome, AgentCrashed) else None
        ask = judge.ask_for(row.name.identifier, case.task.harness_mode)
        scored = scoring_processes().score(case, folder.read_trace(row), ended, None, ask)
        if scored.trace_digest != row.trace_digest:
            raise InputError(
                f"{folder.path / row.trace} is not the trace that was recorded for {row.name}"
            )
        outcome = row.outcome if isinstance(row.outcome, AgentCrashed) else scored.outcome
        rows.append(replace(row, outcome=outcome, score=scored.score))
    return rows
