"""Each episode has its own confined process, and its end costs no other episode."""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fumehood.core.outcome import AgentCrashed, Finished
from fumehood.core.trace import BrokenTrace, verify_chain
from fumehood.core.user_ids import EPISODE_UIDS
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.service.forked_episode import SPARES
from fumehood_agent.errors import FumehoodError
from fumehood_agent.session import Session
from tests.chaos.commands import children_of
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

PATIENCE_S = 120.0
"""Longer than a call may compute on a busy machine."""
CALCULATOR: dict[str, Any] = {
    "world": "bfcl",
    "state": {"involved_classes": ["MathAPI"], "initial_config": {}},
}
COMPUTES_FOR_YEARS = ("round_number", {"number": 0, "decimal_places": -(10**19)})
needs_bfcl = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="needs bfcl-eval")


@pytest.fixture
def pool() -> Iterator[ServicePool]:
    with ServicePool(1) as services:
        yield services


def _process(episode: Listened) -> tuple[int, int]:
    """Return the process that listens on an episode's socket, and its user."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{episode.directory}/grpc.sock")
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = struct.unpack("iII", found)
    return pid, uid


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _call(episode: Listened, name: str, arguments: dict[str, Any]) -> None:
    try:
        with Session(Path(episode.directory) / "grpc.sock") as session:
            session.call(name, arguments)
    except FumehoodError:
        pass  # The connection breaks when the process ends.


def _finish(episode: Listened) -> None:
    with Session(Path(episode.directory) / "grpc.sock") as session:
        assert session.call("get_account", {"id": "ax1"})
        session.submit("done")
    episode.close()
    verify_chain(episode.records)
    assert episode.evidence.ends["agent"] == Finished("done")


def test_each_episode_has_its_own_process_and_user(pool: ServicePool) -> None:
    with (
        pool.lease() as client,
        listening(client, episode_spec(episode_id="one")) as one,
        listening(client, episode_spec(episode_id="two")) as two,
    ):
        (first, first_user), (second, second_user) = _process(one), _process(two)
        assert len({first, second, pool.workers()[0].pid}) == 3
        if os.geteuid() == 0:
            assert first_user != second_user
            assert {first_user, second_user} <= set(EPISODE_UIDS)
        status = Path(f"/proc/{first}/status").read_text(encoding="ascii")
        assert "NoNewPrivs:\t1" in status
        assert "CapEff:\t0000000000000000" in status
        limits = Path(f"/proc/{first}/limits").read_text(encoding="ascii")
        (memory,) = (line for line in limits.splitlines() if line.startswith("Max data size"))
        assert memory.split()[3:5] == [str(3 << 29)] * 2, "1.5 GiB"
    assert wait_until(partial(_is_gone, first))
    assert wait_until(partial(_is_gone, second))
    assert not Path(one.directory).parent.exists()


def test_an_episode_uses_few_threads(pool: ServicePool) -> None:
    with pool.lease() as client, listening(client, episode_spec()) as episode:
        pid, _ = _process(episode)
        with Session(Path(episode.directory) / "grpc.sock") as session:
            session.call("get_account", {"id": "ax1"})
            # Ten, and one more if the stream opens before the thread that sent the task is free.
            assert len(os.listdir(f"/proc/{pid}/task")) <= 11


def test_the_process_of_an_open_episode_may_write_no_file(pool: ServicePool) -> None:
    with pool.lease() as client, listening(client, episode_spec()) as episode:
        limits = Path(f"/proc/{_process(episode)[0]}/limits").read_text(encoding="ascii")
        (line,) = (line for line in limits.splitlines() if line.startswith("Max file size"))
        assert line.split()[3:5] == ["0", "0"]
        _finish(episode)


def test_the_fork_server_has_one_thread_and_no_file_of_grpc(pool: ServicePool) -> None:
    with pool.lease() as client, listening(client, episode_spec()):
        (fork_server,) = children_of(pool.workers()[0].pid)
        own = Path(f"/proc/{fork_server.pid}")
        assert len(os.listdir(own / "task")) == 1
        files = {os.readlink(file) for file in (own / "fd").iterdir()}
    assert not {file for file in files if "epoll" in file or "eventfd" in file}


def test_an_episode_gets_a_process_that_existed_before(pool: ServicePool) -> None:
    (fork_server,) = children_of(pool.workers()[0].pid)
    for number in range(4):
        assert wait_until(lambda: len(children_of(fork_server.pid)) == SPARES)
        prepared = {process.pid for process in children_of(fork_server.pid)}
        spec = episode_spec(episode_id=f"prepared{number}")
        with pool.lease() as client, listening(client, spec) as episode:
            assert _process(episode)[0] in prepared
            episode.close()


def test_an_episode_can_do_without_a_prepared_process(pool: ServicePool) -> None:
    (fork_server,) = children_of(pool.workers()[0].pid)
    assert wait_until(lambda: len(children_of(fork_server.pid)) == SPARES)
    for process in children_of(fork_server.pid):
        process.kill()
    assert wait_until(lambda: not children_of(fork_server.pid))
    with pool.lease() as client, listening(client, episode_spec()) as episode:
        _finish(episode)


@needs_bfcl
@pytest.mark.slow
def test_a_call_that_never_returns_costs_only_its_own_episode() -> None:
    with (
        ServicePool(1, ServiceOptions(worlds=["bfcl", "crud"])) as pool,
        pool.lease() as client,
        listening(client, episode_spec(episode_id="hangs", **CALCULATOR)) as hangs,
        listening(client, episode_spec(episode_id="victim")) as victim,
    ):
        caller = Thread(target=_call, args=(hangs, *COMPUTES_FOR_YEARS))
        caller.start()
        _finish(victim)
        assert wait_until(lambda: bool(hangs.ended_seats), PATIENCE_S)
        hangs.hear_out()
        caller.join()
    assert hangs.lost is None
    verify_chain(hangs.records)
    end = hangs.evidence.ends["agent"]
    assert isinstance(end, AgentCrashed)
    assert "exceeded its processor time" in end.detail


def test_a_process_that_crashes_ends_its_episode_as_the_agents_failure(pool: ServicePool) -> None:
    with (
        pool.lease() as client,
        listening(client, episode_spec(episode_id="crashes")) as crashes,
        listening(client, episode_spec(episode_id="victim")) as victim,
    ):
        _call(crashes, "get_account", {"id": "ax1"})
        os.kill(_process(crashes)[0], signal.SIGSEGV)
        crashes.hear_out()
        _finish(victim)
    verify_chain(crashes.records)
    assert crashes.events[0]["kind"] == "opened"
    assert crashes.ended_seats == ["agent"]
    assert crashes.evidence.ends["agent"] == AgentCrashed(
        "the process of the episode was killed by signal 11"
    )


def test_a_process_that_an_outsider_kills_leaves_a_trace_without_an_end(pool: ServicePool) -> None:
    with (
        pool.lease() as client,
        listening(client, episode_spec(episode_id="killed")) as killed,
        listening(client, episode_spec(episode_id="victim")) as victim,
    ):
        os.kill(_process(killed)[0], signal.SIGKILL)
        killed.hear_out()
        _finish(victim)
    with pytest.raises(BrokenTrace, match="the end record is missing"):
        verify_chain(killed.records)


def test_the_processes_of_open_episodes_end_with_their_service(pool: ServicePool) -> None:
    with pool.lease() as client:
        episode = Listened(client, episode_spec())
        pid, _ = _process(episode)
        os.kill(pool.workers()[0].pid, signal.SIGKILL)
        assert wait_until(partial(_is_gone, pid))
        episode.hear_out()
    assert episode.lost is not None


def test_a_service_without_episodes_has_no_process_of_one(pool: ServicePool) -> None:
    with pool.lease() as client:
        pids = []
        for number in range(3):
            with listening(client, episode_spec(episode_id=f"e{number}")) as episode:
                pids.append(_process(episode)[0])
        assert wait_until(lambda: all(map(_is_gone, pids)))
        assert client.health().episodes_open == 0
