"""Scores a finished run again, from its traces and the kept replies of its judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fumehood.core.errors import InputError
from fumehood.core.outcome import AgentCrashed
from fumehood.core.task import Case
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.bounded_scoring import ToScore, scoring_processes
from fumehood.orchestrator.run_plan import config_of
from fumehood.orchestrator.scoring import PlayedAttempt, ScoredAttempt
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.scorers.judges.question import Ask, no_judge
from fumehood.scorers.verdict import VERIFIER, verdict_from_json, with_verdict

if TYPE_CHECKING:
    from fumehood.orchestrator.judging import RunJudge

AT_ONCE = 16
"""Attempts that a scoring process gets at once."""
AT_ONCE_BYTES = 4 << 20
"""Size of their traces, at most, unless a single trace is larger."""


def rescore(folder: RunReader, judge: RunJudge | None = None) -> list[EpisodeRow]:
    """Return the rows of a run with outcome and score computed again from trace and gold.

    Args:
        folder: of the run.
        judge: answers what no rule decides; None for the kept replies of the run's own judge.

    Raises:
        InputError: a trace is missing, was changed, or belongs to no task of the suite.
    """
    cases = {case.task.task_id: case for case in folder.suite().cases}
    ahead = _Ahead(folder, cases, judge.ask_for if judge else _asks_of(folder))
    return [
        folder.once(row.name, "scored", partial(ahead.scored, at)) if row.trace else row
        for at, row in enumerate(ahead.rows)
    ]


_AskFor = Callable[[str, str], Ask]
"""As :meth:`fumehood.orchestrator.judging.RunJudge.ask_for`."""


def _asks_of(folder: RunReader) -> _AskFor:
    """Return what answers from the kept replies of a run's own judge."""
    config = config_of(folder)
    if config.judge is None:
        return lambda episode_id, harness_mode: no_judge
    # The import of a client of models takes longer than scoring hundreds of episodes.
    from fumehood.orchestrator.judging import RunJudge, judge_source

    return RunJudge(judge_source(config, live=False), folder.path).ask_for


class _Ahead:
    """Scores rows that are asked for in order, some at a time."""

    def __init__(self, folder: RunReader, cases: Mapping[str, Case], ask_for: _AskFor) -> None:
        self.rows = folder.rows()
        self._folder = folder
        self._cases = cases
        self._ask_for = ask_for
        self._scored: dict[int, ScoredAttempt] = {}

    def scored(self, at: int) -> EpisodeRow:
        """Return the row at a position, which has a trace, scored again."""
        if at not in self._scored:
            requests: dict[int, ToScore] = {}
            size = 0
            for number in range(at, min(at + AT_ONCE, len(self.rows))):
                if self.rows[number].trace and size < AT_ONCE_BYTES:
                    requests[number] = self._request(self.rows[number])
                    size += len(requests[number].request.trace)
            scored = scoring_processes().score_all(list(requests.values()))
            self._scored = dict(zip(requests, scored, strict=True))
        return _rescored(self._folder, self.rows[at], self._scored.pop(at))

    def _request(self, row: EpisodeRow) -> ToScore:
        case = self._cases.get(row.name.task)
        if case is None:
            raise InputError(f"{row.name}: the run's suite has no such task")
        case = with_verdict(case, verdict_from_json(row.score.metrics.get(VERIFIER)))
        # The trace does not contain the exit of the process; the row does.
        ended = Exit(0, ExitReason.EXITED) if isinstance(row.outcome, AgentCrashed) else None
        ask = self._ask_for(row.name.identifier, case.task.harness_mode)
        return ToScore(PlayedAttempt(case, self._folder.trace_content(row), ended), ask)


def _rescored(folder: RunReader, row: EpisodeRow, result: ScoredAttempt) -> EpisodeRow:
    if result.trace_digest != row.trace_digest:
        raise InputError(
            f"{folder.path / row.trace} is not the trace that was recorded for {row.name}"
        )
    outcome = row.outcome if isinstance(row.outcome, AgentCrashed) else result.outcome
    return replace(row, outcome=outcome, score=result.score)
