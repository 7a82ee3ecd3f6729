"""A run writes a row per episode, retries infrastructure failures, and stops after many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, SIGTERM
from threading import Event, Semaphore

import pytest

from fumehood.core.encryption import ENCRYPTED
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.core.gold import Gold
from fumehood.core.outcome import Finished, Infra, InfraKind
from fumehood.core.task import Case, Suite
from fumehood.core.trace import Record
from fumehood.engines.engine import BoxOutput, Exit, ExitReason
from fumehood.orchestrator.config import JudgingConfig
from fumehood.orchestrator.episode_runner import Attempt, EpisodePlan, InlinePlan
from fumehood.orchestrator.episode_time import AwaitSlot
from fumehood.orchestrator.judging import JudgeSource, RunJudge
from fumehood.orchestrator.plan import PlannedEpisode, plan_episodes
from fumehood.orchestrator.run import CONSECUTIVE_FAILURES_MAX, AttemptEpisode, Run, RunLimits
from fumehood.orchestrator.stop_signals import Stopped, StopRequests
from fumehood.records.redaction import Redaction
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.service.inline import play_in_process
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from tests.parts.tasks import crud_task

PATIENCE_S = 30.0
NO_DAEMON = Infra(InfraKind.ENGINE, "no daemon")


def lost(infra: Infra = NO_DAEMON) -> Attempt:
    return Attempt((), None, BoxOutput(b"out", b"", 3, 0), infra, 1)


def played(spec: EpisodeSpec) -> Attempt:
    """Play an episode in this process; its agent submits at once."""
    workers = {spec.seats[0].name: lambda session: session.submit("done")}
    result = play_in_process(spec, workers, MonotonicClock(), SeatLimits())
    return Attempt(result.records, Exit(0, ExitReason.EXITED), BoxOutput(b"", b"", 0, 0), None, 1)


def planned_episodes(count: int, **change: str) -> tuple[Suite, list[PlannedEpisode]]:
    cases = (Case(crud_task(f"t{number}", **change), Gold("native", ())) for number in range(count))
    suite = Suite("small", tuple(cases))
    return suite, list(plan_episodes(suite, ("agent",), 1, 0))


class Runs:
    """Runs a plan into a new folder, one episode after another, with scripted attempts."""

    def __init__(self, folder: Path, *, infra_attempts: int = 1) -> None:
        self.rows: list[EpisodeRow] = []
        self.attempts: list[str] = []
        self.stop = StopRequests()
        self.abandoned = Event()
        self.messages: list[str] = []
        self._path = folder
        self._infra_attempts = infra_attempts
        self._turn = Semaphore(1)

    def run(
        self, planned: tuple[Suite, Iterable[PlannedEpisode]], attempt: AttemptEpisode
    ) -> RunFolder:
        """Run; each episode begins when the row of the one before it is written."""
        suite, episodes = planned
        self.folder = RunFolder.create(self._path, {"run": "ab", "isolation": "none"}, suite)
        begun = set[str]()

        def in_turn(spec: EpisodeSpec, plan: EpisodePlan, await_slot: AwaitSlot | None) -> Attempt:
            if spec.episode_id not in begun:
                begun.add(spec.episode_id)
                assert self._turn.acquire(timeout=PATIENCE_S)
            self.attempts.append(spec.episode_id)
            try:
                return attempt(spec, plan, await_slot)
            except BaseException:
                # There will be no row that could begin the next episode.
                self._turn.release()
                raise

        limits = RunLimits(concurrency=1, infra_attempts=self._infra_attempts)
        judge = RunJudge(JudgeSource(None, JudgingConfig()), self.folder.path)
        run = Run(
            self.folder,
            in_turn,
            lambda _: InlinePlan(()),
            limits,
            judge,
            self.stop,
            self.abandoned.set,
            tell=self.messages.append,
            redaction=Redaction(["sk-of-the-registry"]),
        )
        run.execute(episodes, self._on_row)
        return self.folder

    def _on_row(self, row: EpisodeRow) -> None:
        self.rows.append(row)
        self._turn.release()


def test_the_detail_of_a_failure_contains_no_key(runs: Runs) -> None:
    failure = Infra(InfraKind.ENGINE, "401 from https://me:sk-of-the-registry@images")
    (row,) = runs.run(planned_episodes(1), in_order([failure])).rows()
    assert row.outcome == Infra(InfraKind.ENGINE, "401 from https://me:[key]@images")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "run")


def in_order(outcomes: Iterable[Infra | None]) -> AttemptEpisode:
    """Return attempts with these failures; None plays the episode."""
    remaining = iter(outcomes)

    def attempt(spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        infra = next(remaining)
        return played(spec) if infra is None else lost(infra)

    return attempt


def test_a_run_stops_after_too_many_lost_episodes_in_a_row(runs: Runs) -> None:
    with pytest.raises(InfraError, match=r"failed 8 episodes in a row, the last with .*no daemon"):
        runs.run(planned_episodes(30), lambda spec, *_: lost())
    # The episode that had begun is finished and written too, and so is one that a thread had taken.
    assert CONSECUTIVE_FAILURES_MAX <= len(runs.rows) <= CONSECUTIVE_FAILURES_MAX + 2
    assert runs.folder.rows() == runs.rows
    assert len(runs.attempts) == len(runs.rows)


def test_short_episodes_are_attempted_in_groups_and_lost_ones_again(tmp_path: Path) -> None:
    suite, episodes = planned_episodes(40)
    folder = RunFolder.create(tmp_path / "run", {"run": "ab", "isolation": "none"}, suite)
    groups: list[int] = []

    def attempt_all(group: Sequence[tuple[EpisodeSpec, EpisodePlan]]) -> list[Attempt]:
        groups.append(len(group))
        return [lost() if spec.episode_id.endswith("t7/0") else played(spec) for spec, _ in group]

    rows: list[EpisodeRow] = []
    run = Run(
        folder,
        lambda spec, *_: played(spec),
        lambda _: InlinePlan(()),
        RunLimits(concurrency=1, grouped=8),
        RunJudge(JudgeSource(None, JudgingConfig()), folder.path),
        StopRequests(),
        lambda: None,
        attempt_all,
    )
    run.execute(episodes, rows.append)
    assert [row.name for row in rows] == [planned.name for planned in episodes]
    assert {row.outcome for row in rows} == {Finished("done")}
    assert {row.name.task: row.attempts for row in rows if row.attempts > 1} == {"t7": 2}
    assert sum(groups) == 40
    assert max(groups) <= 8


def test_a_finished_episode_interrupts_a_sequence_of_lost_ones(runs: Runs) -> None:
    almost = [NO_DAEMON] * (CONSECUTIVE_FAILURES_MAX - 1)
    runs.run(planned_episodes(15), in_order([*almost, None, *almost]))
    assert [row.is_infra for row in runs.rows] == [True] * 7 + [False] + [True] * 7


def test_tasks_that_cannot_be_hosted_do_not_stop_a_run(runs: Runs) -> None:
    no_world = Infra(InfraKind.TASK, "world: there is none")
    runs.run(planned_episodes(12), lambda spec, *_: lost(no_world))
    assert [row.outcome for row in runs.rows] == [no_world] * 12


@pytest.mark.parametrize(
    "kind",
    [InfraKind.ENGINE, InfraKind.SERVICE, InfraKind.COUNTERPART, InfraKind.ORCHESTRATOR],
)
def test_an_infrastructure_failure_is_attempted_again(kind: InfraKind, tmp_path: Path) -> None:
    runs = Runs(tmp_path / "run", infra_attempts=3)
    failure = Infra(kind, "gone")
    runs.run(planned_episodes(2), in_order([failure, failure, None, failure, failure, failure]))
    assert [(row.outcome, row.attempts) for row in runs.rows] == [
        (Finished("done"), 3),
        (failure, 3),
    ]


@pytest.mark.parametrize("kind", [InfraKind.TASK, InfraKind.MODELS])
def test_a_failure_that_would_repeat_is_not_attempted_again(
    kind: InfraKind, tmp_path: Path
) -> None:
    runs = Runs(tmp_path / "run", infra_attempts=3)
    runs.run(planned_episodes(1), lambda spec, *_: lost(Infra(kind, "no")))
    assert [row.attempts for row in runs.rows] == [1]


def test_an_interrupt_keeps_the_rows_of_begun_episodes(runs: Runs) -> None:
    def attempt(spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        if spec.episode_id == runs.attempts[0]:
            return played(spec)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.run(planned_episodes(5), attempt)
    assert [row.outcome for row in runs.folder.rows()] == [Finished("done")]


def test_a_signal_finishes_the_episode_that_has_begun(runs: Runs) -> None:
    def attempt(spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        runs.stop.receive(SIGTERM)
        return played(spec)

    with pytest.raises(Stopped) as stopped:
        runs.run(planned_episodes(5), attempt)
    assert stopped.value.number == SIGTERM
    assert len(runs.attempts) == 1
    assert [row.outcome for row in runs.folder.rows()] == [Finished("done")]
    assert not runs.abandoned.is_set()


def test_a_second_signal_abandons_the_episode_that_has_begun(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "run", infra_attempts=3)

    def attempt(spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        runs.stop.receive(SIGINT)
        runs.stop.receive(SIGTERM)
        assert runs.abandoned.wait(PATIENCE_S)
        return lost()

    with pytest.raises(Stopped) as stopped:
        runs.run(planned_episodes(5), attempt)
    assert stopped.value.number == SIGINT
    assert runs.messages == [
        "stopping: 1 episode is finished first; press Ctrl-C again to abandon it",
        "abandoning the running episodes; resume runs them again",
    ]
    assert len(runs.attempts) == 1
    assert runs.folder.rows() == []


def test_the_first_signal_after_a_failure_abandons_the_episodes_that_have_begun(
    runs: Runs,
) -> None:
    suite, episodes = planned_episodes(2)
    begun, failed = Event(), Event()

    def failing() -> Iterable[PlannedEpisode]:
        yield episodes[0]
        assert begun.wait(PATIENCE_S)
        failed.set()
        raise InfraError("no further thread")

    def attempt(spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        begun.set()
        assert failed.wait(PATIENCE_S)
        runs.stop.receive(SIGTERM)
        assert runs.abandoned.wait(PATIENCE_S)
        return lost()

    with pytest.raises(InfraError, match="no further thread"):
        runs.run((suite, failing()), attempt)
    assert runs.messages == ["abandoning the running episodes; resume runs them again"]
    assert runs.folder.rows() == []


@pytest.mark.slow
def test_a_row_that_cannot_be_written_abandons_the_other_episodes(runs: Runs) -> None:
    def attempt(spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        (runs.folder.path / "episodes.jsonl").mkdir(exist_ok=True)
        return lost()

    with pytest.raises(InfraError, match=r"cannot be written: Is a directory"):
        runs.run(planned_episodes(5), attempt)
    assert runs.abandoned.is_set()


@pytest.mark.parametrize(("harness_mode", "files"), [("native", 1), (ENCRYPTED, 0)])
def test_output_of_an_encrypted_task_is_not_stored(
    harness_mode: str, files: int, runs: Runs
) -> None:
    folder = runs.run(
        planned_episodes(1, harness_mode=harness_mode),
        lambda spec, *_: lost(Infra(InfraKind.TASK, "no")),
    )
    (row,) = runs.rows
    assert row.stdout_bytes == 3
    assert len(list((folder.path / "output").rglob("*.std*"))) == files


def test_the_row_contains_what_lost_attempts_cost(tmp_path: Path) -> None:
    paid = {"kind": "model_call", "spent": {"model_calls": 1, "model_tokens": 70}}
    records = (Record(json.dumps(paid), "", 0, 0),) * 2
    attempts = iter([replace(lost(), records=records), replace(lost(), records=records)])
    runs = Runs(tmp_path / "run", infra_attempts=3)
    folder = runs.run(planned_episodes(1), lambda spec, *_: next(attempts, None) or played(spec))
    (row,) = folder.rows()
    assert (row.attempts, row.is_infra) == (3, False)
    assert row.lost_costs == {"model_calls": 4, "model_tokens": 280}
