"""Scores again, from the traces and from what the run's judge said."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.errors import InputError
from fumehood.core.outcome import AgentCrashed
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.judge import judge
from fumehood.orchestrator.launch import config_of
from fumehood.orchestrator.run_judge import RunJudge
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder


def rescore(folder: RunFolder, judging: RunJudge | None = None) -> list[EpisodeRow]:
    """Return the rows of a run with outcome and score judged again from trace and gold.

    Args:
        folder: of the run.
        judging: answers what no rule decides; None for what the run's own judge said.

    Raises:
        InputError: a trace is missing, was changed, or belongs to no task of the suite.
    """
    cases = {case.task.task_id: case for case in folder.suite().cases}
    judging = judging or RunJudge(config_of(folder), folder.path, live=False)
    rows = []
    for row in folder.rows():
        if not row.trace:
            rows.append(row)
            continue
        case = cases.get(row.name.task)
        if case is None:
            raise InputError(f"{row.name}: the run's suite has no such task")
        # Only the process's end is not in the trace; the row remembers it.
        ended = Exit(0, ExitReason.EXITED) if isinstance(row.outcome, AgentCrashed) else None
        ask = judging.ask_for(row.name.identifier, case.task.profile)
        verdict = judge(case, folder.read_trace(row), ended, None, ask)
        if verdict.trace_digest != row.trace_digest:
            raise InputError(
                f"{folder.path / row.trace} is not the trace that was recorded for {row.name}"
            )
        outcome = row.outcome if isinstance(row.outcome, AgentCrashed) else verdict.outcome
        rows.append(replace(row, outcome=outcome, score=verdict.score))
    return rows
