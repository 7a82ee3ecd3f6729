"""Many episodes: what is missing is run, every one is written down when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from fumehood.core.encryption import ENCRYPTED
from fumehood.core.errors import InfraError
from fumehood.core.outcome import Infra, InfraKind, outcome_name
from fumehood.engines.engine import BoxOutput
from fumehood.orchestrator.episode_runner import Attempt, EpisodePlan, EpisodeRunner
from fumehood.orchestrator.executor import EpisodeExecutor
from fumehood.orchestrator.judging import RunJudge
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.scoring import ScoredAttempt, score_attempt
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder

EpisodePlanner = Callable[[PlannedEpisode], EpisodePlan]
"""Plans how the agents of an episode are reached."""

RETRIED = frozenset(
    {InfraKind.ENGINE, InfraKind.SERVICE, InfraKind.COUNTERPART, InfraKind.ORCHESTRATOR}
)
"""Failures of ours that may be gone the next time; a task that cannot be hosted never can."""

LOST_IN_A_ROW_MAX = 8
"""So many failures of ours in a row are no accident."""

_log = structlog.get_logger("fumehood.run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """How a run spends the machine."""

    concurrency: int
    """Episodes running at once."""
    infra_attempts: int = 3
    """Tries per episode before a failure of ours is written down."""
    wall_ms: int = 60_000
    """Wall time of an episode whose task states none, milliseconds."""


class Run:
    """Runs planned episodes in boxes and writes them into a folder."""

    def __init__(
        self,
        folder: RunFolder,
        runner: EpisodeRunner,
        planner: EpisodePlanner,
        limits: RunLimits,
        judge: RunJudge,
    ) -> None:
        self._folder = folder
        self._runner = runner
        self._planner = planner
        self._limits = limits
        self._judge = judge

    def execute(
        self, planned: Iterable[PlannedEpisode], on_row: Callable[[EpisodeRow], None]
    ) -> None:
        """Run every episode, ``concurrency`` at once.

        Stops early when one episode after the other fails on our side: more of them would say no more.

        Args:
            planned: what to run; taken one by one, so it may be long.
            on_row: told of each finished episode, from this thread.

        Raises:
            InputError: no box can be started from what the user named.
            InfraError: ``LOST_IN_A_ROW_MAX`` episodes in a row failed on our side.
        """
        crew = EpisodeExecutor(self._limits.concurrency, self._episode, planned)
        in_a_row = 0
        try:
            for rows in crew.batches():
                self._write_down(rows, on_row)
                for row in rows:
                    in_a_row = in_a_row + 1 if _is_machinery(row) else 0
                    if in_a_row >= LOST_IN_A_ROW_MAX:
                        raise InfraError(_gave_up(row, in_a_row, self._folder))
        finally:
            # What was begun is brought to its end and written down, also when somebody interrupts.
            for rows in crew.rest():
                self._write_down(rows, on_row)

    def _write_down(self, rows: list[EpisodeRow], on_row: Callable[[EpisodeRow], None]) -> None:
        self._folder.append_rows(rows)
        for row in rows:
            on_row(row)

    def _episode(self, planned: PlannedEpisode) -> EpisodeRow:
        spec = planned.to_spec(self._limits.wall_ms)
        for number in range(1, self._limits.infra_attempts + 1):
            attempt = self._runner.attempt(spec, self._planner(planned))
            ask = self._judge.ask_for(spec.episode_id, planned.case.task.harness_mode)
            scored = score_attempt(planned.case, attempt.records, attempt.exit, attempt.infra, ask)
            if not _may_pass(scored) or number == self._limits.infra_attempts:
                break
            _log.warning(
                "trying again", episode=str(planned.name), failure=outcome_name(scored.outcome)
            )
        return self._row(planned, attempt, scored, number)

    def _row(
        self, planned: PlannedEpisode, attempt: Attempt, scored: ScoredAttempt, attempts: int
    ) -> EpisodeRow:
        output = attempt.output or BoxOutput(b"", b"", 0, 0)
        trace = (
            self._folder.write_trace(planned.name, attempt.records) if scored.trace_digest else ""
        )
        # What a box prints may repeat a question that must not be stored.
        if planned.case.task.harness_mode != ENCRYPTED:
            self._folder.write_output(planned.name, output.stdout, output.stderr)
        return EpisodeRow(
            name=planned.name,
            seed=planned.seed,
            outcome=scored.outcome,
            score=scored.score,
            trace=trace,
            trace_digest=scored.trace_digest,
            attempts=attempts,
            wall_ms=attempt.wall_ms,
            stdout_bytes=output.stdout_bytes,
            stderr_bytes=output.stderr_bytes,
            refusals=len(scored.evidence.refusals) if scored.evidence else 0,
            data_mode=planned.data_source.data_mode.value if planned.data_source else None,
        )


def _is_machinery(row: EpisodeRow) -> bool:
    """Tell whether a failure says something about the next episode, as that of a single task does not."""
    return isinstance(row.outcome, Infra) and row.outcome.what is not InfraKind.TASK


def _gave_up(row: EpisodeRow, in_a_row: int, folder: RunFolder) -> str:
    reason = row.outcome.detail if isinstance(row.outcome, Infra) else ""
    return (
        f"{in_a_row} episodes in a row failed on our side, at last {outcome_name(row.outcome)}: {reason}; "
        f"what is done is written down, go on with: fumehood resume {folder.path}"
    )


def _may_pass(scored: ScoredAttempt) -> bool:
    return isinstance(scored.outcome, Infra) and scored.outcome.what in RETRIED


def missing(planned: Iterable[PlannedEpisode], rows: Iterable[EpisodeRow]) -> list[PlannedEpisode]:
    """Return what has no row yet, in the order of the plan; rows of our own failures count as none."""
    done = {row.name for row in rows if not row.is_infra}
    return [one for one in planned if one.name not in done]
