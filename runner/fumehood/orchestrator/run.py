"""Runs the episodes of a run, and writes the row of each episode when it is done."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import structlog

from fumehood.core.encryption import ENCRYPTED
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject, as_object
from fumehood.core.outcome import Infra, InfraKind, outcome_name
from fumehood.core.trace import Record
from fumehood.engines.engine import BoxOutput
from fumehood.orchestrator.bounded_scoring import ToScore, scoring_processes
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, EpisodePlan
from fumehood.orchestrator.episode_time import AwaitSlot
from fumehood.orchestrator.executor import EpisodeExecutor
from fumehood.orchestrator.judging import RunJudge
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.scoring import PlayedAttempt, ScoredAttempt
from fumehood.orchestrator.slots import Slots
from fumehood.orchestrator.stop_signals import Stopped, StopRequests
from fumehood.records.redaction import NO_SECRETS, Redaction
from fumehood.records.row import IDENTITY, EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.run_reader import folder_to_resume
from fumehood.scorers.verdict import with_verdict

AttemptEpisode = Callable[[EpisodeSpec, EpisodePlan, AwaitSlot | None], Attempt]
"""Attempts one episode, whose boxes wait for a slot if there is one; an infrastructure failure is
part of the result."""

AttemptEpisodes = Callable[[Sequence[tuple[EpisodeSpec, EpisodePlan]]], list[Attempt]]
"""Attempts several episodes, and returns their attempts in order."""

EpisodePlanner = Callable[[PlannedEpisode], EpisodePlan]
"""Plans how the agents of an episode are reached."""

RETRIED = frozenset(
    {InfraKind.ENGINE, InfraKind.SERVICE, InfraKind.COUNTERPART, InfraKind.ORCHESTRATOR}
)
"""Infrastructure failures after which an episode is attempted again; a task that cannot be hosted
is not."""

GROUP_S = 0.25
"""Duration of a group of short episodes, seconds: much longer than passing it on, and shorter than
a person waits after a signal."""
CONSECUTIVE_FAILURES_MAX = 8
"""A run stops after so many infrastructure failures of an agent in a row: the next ones would fail
too."""

_log = structlog.get_logger("fumehood.run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Concurrency, attempts and time of a run."""

    concurrency: int
    """Episodes that run at once."""
    prepared: int = 0
    """Further episodes whose boxes are started before they run."""
    infra_attempts: int = 3
    """Attempts per episode before its infrastructure failure is written as its row."""
    wall_ms: int = 60_000
    """Wall time of an episode whose task states none, milliseconds."""
    grouped: int = 1
    """Short episodes that one thread plays and scores together, at most."""


class Run:
    """Runs planned episodes and writes them into a folder."""

    def __init__(
        self,
        folder: RunFolder,
        attempt: AttemptEpisode,
        planner: EpisodePlanner,
        limits: RunLimits,
        judge: RunJudge,
        stop: StopRequests,
        abandon: Callable[[], None],
        attempt_all: AttemptEpisodes | None = None,
        tell: Callable[[str], None] = lambda _: None,
        redaction: Redaction = NO_SECRETS,
    ) -> None:
        """Create the run; :meth:`execute` starts it.

        Args:
            folder: receives rows, traces and outputs.
            attempt: attempts one episode; called from several threads.
            planner: plans how the agents of an episode are reached; called from several threads.
            limits: concurrency, attempts and time.
            judge: answers the questions of criteria that no rule decides.
            stop: signals that ask to stop the run.
            abandon: fails every running episode at once.
            attempt_all: attempts a group of episodes; None attempts one after another.
            tell: called with one line for the user when a signal takes effect.
            redaction: removes the secrets of the run from the details of failures.
        """
        self._folder = folder
        self._attempt = attempt
        self._attempt_all = attempt_all or (
            lambda episodes: [attempt(spec, plan, None) for spec, plan in episodes]
        )
        self._group_size = 1
        self._planner = planner
        self._limits = limits
        self._judge = judge
        self._stop = stop
        self._abandon = abandon
        self._tell = tell
        self._redaction = redaction
        self._slots = Slots(limits.concurrency)
        self._is_ending = self._is_abandoned = False
        self._signals_to_finish = 0
        """Signals that asked to finish what has begun; the next one abandons it."""
        self._identities = _identities(folder)

    def execute(
        self, planned: Iterable[PlannedEpisode], on_row: Callable[[EpisodeRow], None]
    ) -> None:
        """Run every episode, ``concurrency`` at once.

        At the end, also after a signal, episodes that have begun are finished and written. They are
        abandoned without a row after a second signal, after the first one if the run has failed,
        and if a row cannot be written.

        Args:
            planned: what to run; taken as threads become free, so the list may be long.
            on_row: called with each finished episode, in this thread.

        Raises:
            InputError: no box can be started from the agent that the user named.
            InfraError: a row cannot be written, or the infrastructure failed
                ``CONSECUTIVE_FAILURES_MAX`` episodes in a row.
            Stopped: a signal was received.
        """
        groups = self._groups(iter(planned))
        threads = self._limits.concurrency + self._limits.prepared
        executor = EpisodeExecutor(threads, self._run_group, groups, self._look_for_signals)
        in_a_row = Counter[str]()
        try:
            for batch in executor.batches():
                rows = [row for group in batch for row in group]
                self._write(rows, on_row)
                for row in rows:
                    # Also by agent: the provider of its model may fail while others work.
                    for whose in ("", f" of {row.name.agent}"):
                        in_a_row[whose] = in_a_row[whose] + 1 if _is_infra_failure(row) else 0
                        if in_a_row[whose] >= CONSECUTIVE_FAILURES_MAX:
                            raise InfraError(_reason_to_stop(row, whose, self._folder))
        except Stopped:
            self._signals_to_finish = 1
            raise
        finally:
            self._is_ending = True
            self._write_rest(executor, on_row)

    def _look_for_signals(self) -> None:
        if not self._is_ending:
            self._stop.check()
        elif self._stop.count > self._signals_to_finish and not self._is_abandoned:
            self._tell("abandoning the running episodes; resume runs them again")
            self._abandon_rest()

    def _abandon_rest(self) -> None:
        if not self._is_abandoned:
            self._is_abandoned = True
            self._abandon()

    def _write_rest(
        self,
        executor: EpisodeExecutor[Sequence[PlannedEpisode], list[EpisodeRow]],
        on_row: Callable[[EpisodeRow], None],
    ) -> None:
        failure: InfraError | None = None
        batches = executor.rest()
        # Boxes that wait for a slot are removed.
        begun = self._slots.close()
        if self._signals_to_finish and begun:
            them, are = ("it", "episode is") if begun == 1 else ("them", "episodes are")
            self._tell(
                f"stopping: {begun} {are} finished first; press Ctrl-C again to abandon {them}"
            )
        for batch in batches:
            rows = [row for group in batch for row in group]
            kept = [row for row in rows if not (self._is_abandoned and row.is_infra)]
            try:
                self._write(kept, on_row)
            except InfraError as error:
                # The other episodes still run, and their boxes must be removed.
                failure = failure or error
        if failure is not None:
            raise failure

    def _write(self, rows: list[EpisodeRow], on_row: Callable[[EpisodeRow], None]) -> None:
        if not rows:
            return
        try:
            self._folder.append_rows(rows)
        except InfraError:
            self._abandon_rest()
            raise
        for row in rows:
            on_row(row)

    def _groups(self, planned: Iterator[PlannedEpisode]) -> Iterator[Sequence[PlannedEpisode]]:
        """Yield groups that take about ``GROUP_S``, as the last group indicates."""
        while group := tuple(islice(planned, self._group_size)):
            yield group

    def _run_group(self, group: Sequence[PlannedEpisode]) -> list[EpisodeRow]:
        started = time.monotonic()
        specs = [planned.to_spec(self._limits.wall_ms) for planned in group]
        with self._slots.one(len(group)) as take_slot:
            episodes = list(zip(specs, map(self._planner, group), strict=True))
            if self._starts_before(episodes):
                attempts = [self._attempt(spec, plan, take_slot) for spec, plan in episodes]
            else:
                take_slot()
                attempts = self._attempt_all(episodes)
            # Also if a box could not be started before: further attempts need the slot.
            take_slot()
            scored = scoring_processes().score_all(list(map(self._to_score, group, attempts)))
            rows = list(map(self._finish, group, specs, attempts, scored))
        size = round(len(group) * GROUP_S / max(time.monotonic() - started, 1e-6))
        self._group_size = max(1, min(size, self._limits.grouped, 2 * len(group)))
        return rows

    def _starts_before(self, episodes: Sequence[tuple[EpisodeSpec, EpisodePlan]]) -> bool:
        """Return whether the boxes of episodes are started before they have a slot."""
        return self._limits.prepared > 0 and all(
            isinstance(plan, BoxPlan) and plan.workspace is None for _, plan in episodes
        )

    def _to_score(self, planned: PlannedEpisode, attempt: Attempt) -> ToScore:
        task = planned.case.task
        ask = self._judge.ask_for(planned.name.identifier, task.harness_mode)
        case = with_verdict(planned.case, attempt.verdict)
        return ToScore(PlayedAttempt(case, attempt.records, attempt.exit), ask, attempt.infra)

    def _finish(
        self,
        planned: PlannedEpisode,
        spec: EpisodeSpec,
        attempt: Attempt,
        scored: ScoredAttempt,
    ) -> EpisodeRow:
        """Return the row of an attempt, or of a later one if the infrastructure failed."""
        lost = Counter[str]()
        for number in range(1, self._limits.infra_attempts + 1):
            if number > 1:
                attempt = self._attempt(spec, self._planner(planned), None)
                (scored,) = scoring_processes().score_all([self._to_score(planned, attempt)])
            is_last = number == self._limits.infra_attempts or self._is_abandoned
            if not _is_retried(scored) or is_last:
                break
            lost.update(model_costs(attempt.records))
            _log.warning(
                "attempting again", episode=str(planned.name), failure=outcome_name(scored.outcome)
            )
        attempt.keep(scored.score.success)
        if isinstance(scored.outcome, Infra):
            lost.update(model_costs(attempt.records))
        return replace(self._row(planned, attempt, scored, number), lost_costs=dict(+lost))

    def _row(
        self, planned: PlannedEpisode, attempt: Attempt, scored: ScoredAttempt, attempts: int
    ) -> EpisodeRow:
        output = attempt.output or BoxOutput(b"", b"", 0, 0)
        trace = (
            self._folder.write_trace(planned.name, attempt.records) if scored.trace_digest else ""
        )
        # An agent may print an encrypted question in plain text.
        if planned.case.task.harness_mode != ENCRYPTED:
            self._folder.write_output(planned.name, output.stdout, output.stderr)
        return EpisodeRow(
            name=planned.name,
            seed=planned.seed,
            outcome=self._redaction.outcome(scored.outcome),
            score=scored.score,
            trace=trace,
            trace_digest=scored.trace_digest,
            attempts=attempts,
            wall_ms=attempt.wall_ms,
            stdout_bytes=output.stdout_bytes,
            stderr_bytes=output.stderr_bytes,
            refusals=scored.refusals,
            data_mode=planned.data_source.data_mode.value if planned.data_source else None,
            isolation=self._folder.other_isolation,
            identity=self._identities.get(planned.agent, {}),
        )


def _identities(folder: RunFolder) -> dict[str, JsonObject]:
    """Return the model, scaffold and arguments of each agent, by label, as ``run.json`` states."""
    agents = folder.manifest().get("agents")
    return {
        str(agent["label"]): {name: agent[name] for name in IDENTITY if name in agent}
        for agent in (agents if isinstance(agents, list) else ())
        if isinstance(agent, dict)
    }


def model_costs(records: Iterable[Record]) -> Counter[str]:
    """Return what the model requests of an attempt cost, by budget kind."""
    costs = Counter[str]()
    for record in records:
        event = json.loads(record.event_json)
        if event.get("kind") == "model_call":
            spent = as_object(event.get("spent"))
            costs.update({kind: count for kind, count in spent.items() if isinstance(count, int)})
    return costs


def _is_infra_failure(row: EpisodeRow) -> bool:
    """Return whether a row shows an infrastructure failure that the next episode may share."""
    return isinstance(row.outcome, Infra) and row.outcome.kind is not InfraKind.TASK


def _reason_to_stop(row: EpisodeRow, whose: str, folder: RunFolder) -> str:
    detail = row.outcome.detail if isinstance(row.outcome, Infra) else ""
    return (
        f"the infrastructure failed {CONSECUTIVE_FAILURES_MAX} episodes{whose} in a row, the last "
        f"with {outcome_name(row.outcome)}: {detail}; finished episodes are stored, continue with: "
        f"fumehood resume {folder_to_resume(folder.path)}"
    )


def _is_retried(scored: ScoredAttempt) -> bool:
    return isinstance(scored.outcome, Infra) and scored.outcome.kind in RETRIED


def missing(planned: Iterable[PlannedEpisode], rows: Iterable[EpisodeRow]) -> list[PlannedEpisode]:
    """Return the episodes without a row or with an infrastructure failure, in planned order."""
    done = {row.name for row in rows if not row.is_infra}
    return [episode for episode in planned if episode.name not in done]
