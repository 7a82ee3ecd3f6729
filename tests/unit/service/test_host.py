"""A host opens and closes episodes, each in its own process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest

from fumehood.service.forked_episode import EpisodeProcesses
from fumehood.service.host import Host
from fumehood.service.message_limits import MessageLimits
from fumehood.service.open_episode import MonotonicClock
from fumehood.wire.ports import Opened, Records
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.folders import short_folder
from tests.parts.raw_seat import TIMEOUT_S, socket_dir
from tests.parts.specs import episode_spec


class MeetingLock:
    """A lock at which the first two threads wait for each other."""

    def __init__(self) -> None:
        self._lock, self._meeting, self._arrivals = Lock(), Barrier(2), count()

    def __enter__(self) -> None:
        if next(self._arrivals) < 2:
            self._meeting.wait(20)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture(scope="module")
def processes() -> Iterator[EpisodeProcesses]:
    with short_folder() as folder:
        limits = MessageLimits()
        started = EpisodeProcesses(None, Path(folder), limits, has_http=False, helper=None)
        started.start()
        yield started
        started.stop()


@pytest.fixture
def host(processes: EpisodeProcesses) -> Host:
    return Host(MonotonicClock(), MessageLimits(), processes)


def test_only_one_of_two_simultaneous_requests_closes_an_episode(host: Any) -> None:
    opened = host.open_episode(episode_spec())
    host._lock = MeetingLock()
    with ThreadPoolExecutor(2) as threads:
        requests = [
            threads.submit(host.close_episode, opened.episode_id, timed_out=False) for _ in range(2)
        ]
        assert sorted(request.result() for request in requests) == [False, True]
    assert (host.health().episodes_open, host.health().episodes_closed) == (0, 1)
    list(opened.messages())


def test_only_the_begin_of_a_held_episode_lets_its_messages_through(host: Host) -> None:
    opened = host.open_episode(episode_spec(), is_held=True)
    messages = opened.messages()
    sockets = next(messages)
    assert isinstance(sockets, Opened)
    with socket_dir(sockets.seats[0].directory) as seat:
        asked = seat.stub.GetTask.future(pb.GetTaskRequest(), timeout=TIMEOUT_S)
        host.begin_episode("unknown")
        assert not asked.done()
        host.begin_episode(opened.episode_id)
        assert asked.result().instruction == "Do it."
    host.close_episode(opened.episode_id, timed_out=False)
    list(messages)


def test_the_process_of_an_episode_ends_if_its_connection_to_the_service_ends(host: Host) -> None:
    opened = host.open_episode(episode_spec())
    messages = opened.messages()
    sockets, records = next(messages), next(messages)
    assert isinstance(sockets, Opened)
    assert isinstance(records, Records)
    # The process has nothing to send now, so no failed write reveals the end.
    opened.child.channel.shutdown(socket.SHUT_RDWR)
    assert opened.child.wait(20) is not None
    list(messages)
