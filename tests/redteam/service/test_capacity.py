"""The capacity of a service, and the release of its resources."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from fumehood.orchestrator.service_pool import ServiceWorker
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.raw_seat import socket_dir
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

BYTES_AN_EPISODE = 400 * 1024
"""Resident memory that an open episode with one call costs at most, threads and sockets
included."""


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_many_episodes_can_run_concurrently(mortal_worker: ServiceWorker, count: int) -> None:
    client = mortal_worker.client
    warm_up(mortal_worker)
    before = client.health().resident_bytes
    with ExitStack() as stack:
        episodes = [
            stack.enter_context(
                listening(client, episode_spec(episode_id=str(number), seed=number))
            )
            for number in range(count)
        ]
        with ThreadPoolExecutor(4) as agents:
            assert all(agents.map(_rename_the_account, episodes))
        health = client.health()
        assert health.episodes_open == count
        assert (health.resident_bytes - before) / count < BYTES_AN_EPISODE
        assert len({episode.directory for episode in episodes}) == count
    for number, episode in enumerate(episodes):
        assert episode.events[0]["seed"] == str(number)
        assert [call.sent["patch"] for call in episode.evidence.calls] == [
            {"by": episode.spec.episode_id}
        ]
    assert client.health().episodes_open == 0


@pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_closed_episodes_leave_no_thread_no_descriptor_and_no_memory(
    mortal_worker: ServiceWorker, count: int
) -> None:
    client = mortal_worker.client
    warm_up(mortal_worker)
    threads, descriptors = threads_of(mortal_worker), descriptors_of(mortal_worker)
    resident = client.health().resident_bytes
    for number in range(count):
        with listening(client, episode_spec(episode_id=str(number))) as episode:
            assert _rename_the_account(episode)
    assert client.health().episodes_closed == count + 10
    assert wait_until(lambda: descriptors_of(mortal_worker) <= descriptors)
    assert wait_until(lambda: threads_of(mortal_worker) <= threads + 4)
    assert client.health().resident_bytes - resident < count * 40 * 1024


def warm_up(worker: ServiceWorker) -> None:
    """Let the service load its lazy modules."""
    for number in range(10):
        with listening(worker.client, episode_spec(episode_id=f"warm {number}")) as episode:
            _rename_the_account(episode)


def _rename_the_account(episode: Listened) -> bool:
    with socket_dir(episode.directory) as connection:
        answer = connection.call("update_account", id="ax1", patch={"by": episode.spec.episode_id})
        return answer.WhichOneof("result") == "value_json"


def threads_of(worker: ServiceWorker) -> int:
    return len(os.listdir(f"/proc/{worker.pid}/task"))


def descriptors_of(worker: ServiceWorker) -> int:
    return len(os.listdir(f"/proc/{worker.pid}/fd"))
