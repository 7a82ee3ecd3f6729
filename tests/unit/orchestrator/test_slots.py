"""A run plays so many episodes at once, and starts the boxes of the next ones before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from signal import SIGINT
from threading import Lock, Semaphore

import pytest

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.core.outcome import Finished
from fumehood.engines.engine import Image, Limits
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.config import JudgingConfig
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, EpisodePlan
from fumehood.orchestrator.episode_time import AwaitSlot
from fumehood.orchestrator.judging import JudgeSource, RunJudge
from fumehood.orchestrator.run import Run, RunLimits
from fumehood.orchestrator.slots import Slots
from fumehood.orchestrator.stop_signals import Stopped, StopRequests
from fumehood.records.run_folder import RunFolder
from tests.parts.listening import wait_until
from tests.unit.orchestrator.test_run import PATIENCE_S, lost, planned_episodes, played

IN_BOXES = BoxPlan(engine=ProcessEngine(), image=Image("", "", ()), limits=Limits())


def test_of_those_that_wait_the_earliest_gets_the_slot() -> None:
    slots, order = Slots(1), list[str]()

    def take_as(name: str, take: Callable[[], None]) -> None:
        take()
        order.append(name)

    with ThreadPoolExecutor(2) as threads, slots.one(1) as first, slots.one(1) as second:
        with slots.one(1) as playing:
            playing()
            late = threads.submit(take_as, "second", second)
            threads.submit(take_as, "first", first)
            assert wait_until(lambda: len(slots._waiting) == 2)
        assert wait_until(lambda: order == ["first"])
        slots.close()
        with pytest.raises(InfraError, match="stopped before the episode began"):
            late.result()


def test_a_slot_is_taken_once_and_freed_at_the_end() -> None:
    slots = Slots(2)
    with slots.one(5) as take:
        take()
        take()
        assert slots.close() == 5
    assert slots.close() == 0


class Prepared:
    """A run with one slot and two prepared boxes, whose attempts end when the test lets them."""

    def __init__(self, folder: Path) -> None:
        self.stop = StopRequests()
        self.started = list[str]()
        self.playing = 0
        self.most_playing = 0
        self.messages = list[str]()
        self.finishes = Semaphore(0)
        self._path = folder
        self._lock = Lock()

    def run(self, episodes: int) -> RunFolder:
        suite, planned = planned_episodes(episodes)
        self.folder = RunFolder.create(self._path, {"run": "ab", "isolation": "none"}, suite)
        run = Run(
            self.folder,
            self._attempt,
            lambda _: IN_BOXES,
            RunLimits(concurrency=1, prepared=2),
            RunJudge(JudgeSource(None, JudgingConfig()), self.folder.path),
            self.stop,
            lambda: None,
            tell=self.messages.append,
        )
        run.execute(planned, lambda _: None)
        return self.folder

    def has_started(self, episodes: int) -> bool:
        """Return whether so many episodes have started, of which one is played."""
        return len(self.started) == episodes and self.playing == 1

    def _attempt(
        self, spec: EpisodeSpec, plan: EpisodePlan, await_slot: AwaitSlot | None
    ) -> Attempt:
        assert await_slot is not None
        self.started.append(spec.episode_id)
        await_slot()
        with self._lock:
            self.playing += 1
            self.most_playing = max(self.playing, self.most_playing)
        assert self.finishes.acquire(timeout=PATIENCE_S)
        with self._lock:
            self.playing -= 1
        return played(spec)


def test_the_next_episodes_start_before_they_are_played(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / "run")
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(prepared.run, 5)
        for number in range(5):
            assert wait_until(partial(prepared.has_started, min(3 + number, 5)))
            prepared.finishes.release()
        assert len(run.result().rows()) == 5
    assert prepared.most_playing == 1
    assert len(set(prepared.started)) == 5


def test_an_episode_whose_box_does_not_start_is_attempted_again_in_its_slot(tmp_path: Path) -> None:
    class Failing(Prepared):
        def _attempt(
            self, spec: EpisodeSpec, plan: EpisodePlan, await_slot: AwaitSlot | None
        ) -> Attempt:
            return played(spec) if await_slot is None else lost()

    rows = Failing(tmp_path / "run").run(4).rows()
    assert [(row.attempts, row.outcome) for row in rows] == [(2, Finished("done"))] * 4


def test_a_signal_ends_prepared_boxes_without_a_row(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / "run")
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(prepared.run, 5)
        assert wait_until(partial(prepared.has_started, 3))
        prepared.stop.receive(SIGINT)
        assert wait_until(lambda: bool(prepared.messages))
        prepared.finishes.release()
        with pytest.raises(Stopped):
            run.result()
    assert prepared.messages == [
        "stopping: 1 episode is finished first; press Ctrl-C again to abandon it"
    ]
    assert len(prepared.folder.rows()) == 1
    assert len(prepared.started) == 3
