"""Checks every generated task before it is written."""

from __future__ import annotations

from fumehood.benchmarks.native.records import TaskRecord
from fumehood.benchmarks.native.tasks import case_of, refuse_incoherent
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.shared.proof import ScoreEpisode, Unproven, prove_not_free, prove_solvable
from fumehood.benchmarks.shared.records import opened
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.task import Case

_ATTEMPTS = 4
"""Number of retries after which a failing call counts as permanently failing."""


def refuse_unfit(record: TaskRecord, score_episode: ScoreEpisode | None) -> None:
    """Raise for a task that must not be published.

    Args:
        record: the task.
        score_episode: scores evidence; None skips the checks that play the task.

    Raises:
        Unproven: names the task and what is wrong with it.
    """
    try:
        refuse_incoherent(record)
        case = opened(case_of(record))
    except InputError as error:
        raise Unproven(record.task_id, str(error)) from None
    if score_episode is None:
        return
    evidence = prove_solvable(case, score_episode)
    prove_not_free(case, score_episode)
    _prove_no_retry_helps(case, evidence)


def _prove_no_retry_helps(case: Case, evidence: Evidence) -> None:
    """Raise if repeating the oracle's first faulted call succeeds without a change."""
    moves = case.gold.oracle or ()
    refused = next(
        (
            at
            for at, made in enumerate(evidence.calls)
            if made.failure is not None and made.fired_rules
        ),
        None,
    )
    if refused is None:
        return
    repeated: list[Move] = [*moves[:refused], *[moves[refused]] * _ATTEMPTS]
    answered = play_in_memory(case.task, repeated).calls[refused:]
    if any(made.failure is None for made in answered):
        raise Unproven(case.task.task_id, "repeating a failed call unchanged succeeds")
