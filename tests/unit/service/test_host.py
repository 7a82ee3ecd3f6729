"""A host opens and closes episodes by their IDs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest

from fumehood.core.clock import StoppedClock
from fumehood.service.forked_episode import ForkedEpisode
from fumehood.service.host import Host
from fumehood.service.message_limits import MessageLimits
from fumehood.supervised.fork_server import ForkServer
from fumehood.supervised.limits import Limits
from tests.parts import forging_entries
from tests.parts.specs import episode_spec


class MeetingLock:
    """A lock at which the first two threads wait for each other."""

    def __init__(self) -> None:
        self._lock, self._meeting, self._arrivals = Lock(), Barrier(2), count()

    def __enter__(self) -> None:
        if next(self._arrivals) < 2:
            self._meeting.wait(60)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture
def episode() -> Iterator[ForkedEpisode]:
    """An open episode."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
        running = ForkServer({"forge": f"{forging_entries.__name__}:forge"})
    with closing(running):
        child = running.start("forge", {"forgery": next(iter(forging_entries.LATE))}, Limits())
        opened = ForkedEpisode(episode_spec(), child, b"", id, 1_000_000)
        yield opened
        opened.abandon()
        list(opened.messages())


def test_only_one_of_two_simultaneous_requests_closes_an_episode(episode: ForkedEpisode) -> None:
    host: Any = Host(StoppedClock(), MessageLimits(), None)
    host._open[episode.episode_id] = episode
    host._lock = MeetingLock()
    with ThreadPoolExecutor(2) as threads:
        requests = [
            threads.submit(host.close_episode, episode.episode_id, timed_out=False)
            for _ in range(2)
        ]
    assert sorted(request.result() for request in requests) == [False, True]
    assert (host.health().episodes_open, host.health().episodes_closed) == (0, 1)
