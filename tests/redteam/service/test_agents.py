"""After any misuse of a socket the episode can be closed, its trace is complete, and others
continue."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

import grpc
import pytest

from fumehood.core.trace import verify_chain
from fumehood.orchestrator.service_pool import ServiceWorker
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import Records
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.raw_seat import RawSeat, refused_with, socket_dir
from tests.parts.specs import episode_spec
from tests.redteam.service.misdeeds import GOOD_MESSAGE, MISDEEDS, STATUS_TEXTS

CLOSING_S = 4.0
"""Closing takes milliseconds; a blocked call takes until the timeout of gRPC."""


@pytest.fixture
def episode(client: ControlClient, episode_id: str) -> Iterator[Listened]:
    """An episode with a budget of 50 calls."""
    with listening(client, episode_spec(episode_id=episode_id, steps=50)) as opened:
        yield opened


def close_quickly(episode: Listened) -> None:
    """Close an episode and check the duration and the complete trace."""
    started = time.monotonic()
    assert episode.close()
    assert time.monotonic() - started < CLOSING_S
    verify_chain(episode.records)
    assert not os.path.exists(episode.directory)


def is_answered(connection: RawSeat) -> bool:
    return connection.call("get_account", id="ax1").WhichOneof("result") == "value_json"


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_a_malformed_message_is_rejected_without_effect(episode: Listened, misdeed: str) -> None:
    with socket_dir(episode.directory) as connection:
        _, text = refused_with(lambda: MISDEEDS[misdeed](connection))
        assert any(known in text for known in STATUS_TEXTS), text
    with socket_dir(episode.directory) as connection:
        assert is_answered(connection)
    close_quickly(episode)


@pytest.mark.slow
def test_repeated_misuse_costs_the_episode_nothing(
    episode: Listened, lasting_worker: ServiceWorker
) -> None:
    before = threads_of(lasting_worker)
    cheap = [misdeed for name, misdeed in MISDEEDS.items() if "unpacked" not in name]

    def misbehave(_: int) -> None:
        with socket_dir(episode.directory) as connection:
            for misdeed in cheap:
                refused_with(lambda misdeed=misdeed: misdeed(connection))  # type: ignore[misc]

    with ThreadPoolExecutor(4) as agents:
        list(agents.map(misbehave, range(8)))
    close_quickly(episode)
    assert wait_until(lambda: threads_of(lasting_worker) <= before + 8)


@pytest.mark.slow
def test_the_number_of_concurrent_streams_is_limited(
    episode: Listened, lasting_worker: ServiceWorker
) -> None:
    open_ended: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
    before = threads_of(lasting_worker)
    with ExitStack() as stack:
        connections = [stack.enter_context(socket_dir(episode.directory)) for _ in range(40)]
        streams: list[Any] = [
            connections[number % 40].stub.Interact(iter(open_ended.get, None))
            for number in range(1000)
        ]
        assert wait_until(lambda: sum(stream.done() for stream in streams) > 300)
        codes = {stream.code() for stream in streams if stream.done()}
        assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert threads_of(lasting_worker) <= before + 20
        for stream in streams:
            stream.cancel()
            open_ended.put(None)
    with socket_dir(episode.directory) as connection:
        assert wait_until(lambda: _is_let_in(connection))
    close_quickly(episode)


def test_unread_answers_block_no_other_agent(
    client: ControlClient, episode: Listened, episode_id: str
) -> None:
    text = "x" * 500_000
    writing = pb.CallToolRequest(
        tool_name="update_account", arguments_json=f'{{"id":"ax1","patch":{{"t":"{text}"}}}}'
    )
    with socket_dir(episode.directory) as connection:
        never_read = connection.interact(iter([pb.InteractRequest(call=writing)] * 40))
        with listening(client, episode_spec(episode_id=f"{episode_id} beside")) as beside:
            with socket_dir(beside.directory) as other:
                assert all(is_answered(other) for _ in range(20))
            close_quickly(beside)
        close_quickly(episode)
        with pytest.raises(grpc.RpcError):
            list(never_read)


@pytest.mark.slow
def test_large_calls_do_not_break_the_trace(client: ControlClient, episode_id: str) -> None:
    """The calls together exceed the size of one message."""
    spec = episode_spec(episode_id=episode_id, world="files", state={})
    with listening(client, spec) as episode:
        with socket_dir(episode.directory) as connection:
            text = '{"path":"/a","content":"' + "é" * 500_000 + '"}'
            for _ in range(25):
                assert connection.send("write_file", text).WhichOneof("result") == "value_json"
        close_quickly(episode)
        assert episode.lost is None
        sizes = [
            sum(len(record.event_json) for record in message.records)
            for message in episode.messages
            if isinstance(message, Records)
        ]
    assert sum(sizes) > 64 << 20
    assert max(sizes) < 8 << 20


DYING = """
import sys
from fumehood_agent import Session
session = Session(sys.argv[1] + "/grpc.sock")
session.call("update_account", {"id": "ax1", "patch": {"tier": "pro"}})
print("called", flush=True)
while True:
    session.call("get_account", {"id": "ax1"})
"""


def test_an_agent_that_dies_during_a_call_leaves_a_complete_trace(
    client: ControlClient, episode_id: str
) -> None:
    with listening(client, episode_spec(episode_id=episode_id)) as episode:
        command = [sys.executable, "-c", DYING, episode.directory]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"called\n"
            agent.send_signal(signal.SIGKILL)
        with socket_dir(episode.directory) as connection:
            assert '"pro"' in connection.call("get_account", id="ax1").value_json
        close_quickly(episode)
        assert episode.evidence.ends == {}
        assert len(episode.evidence.calls) >= 2


def test_connections_above_the_limit_are_closed(
    episode: Listened, lasting_worker: ServiceWorker
) -> None:
    before = descriptors_of(lasting_worker)
    with ExitStack() as stack:
        greeted = [_greets(stack, episode.directory) for _ in range(150)]
        assert greeted == [True] * 64 + [False] * 86
        assert wait_until(lambda: descriptors_of(lasting_worker) <= before + 64)
    with socket_dir(episode.directory) as connection:
        assert wait_until(lambda: _is_let_in(connection))
    close_quickly(episode)
    assert wait_until(lambda: descriptors_of(lasting_worker) <= before)


def test_an_open_stream_does_not_keep_the_episode_open(episode: Listened) -> None:
    requests: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
    with socket_dir(episode.directory) as connection:
        answers = connection.interact(iter(requests.get, None))
        requests.put(pb.InteractRequest.FromString(GOOD_MESSAGE))
        assert next(answers).call.failure.code == "missing_required_arg"
        close_quickly(episode)
        with pytest.raises(grpc.RpcError):
            next(answers)
        requests.put(None)


def test_a_closed_seat_is_unreachable(episode: Listened) -> None:
    with socket_dir(episode.directory) as connection:
        assert is_answered(connection)
        close_quickly(episode)
        code, _ = refused_with(lambda: connection.call("get_account", id="ax1"))
        assert code is grpc.StatusCode.UNAVAILABLE


def _greets(stack: ExitStack, directory: str) -> bool:
    """Connect and stay connected; return whether the other side speaks HTTP/2."""
    connection = stack.enter_context(socket.socket(socket.AF_UNIX))
    connection.settimeout(10)
    connection.connect(f"{directory}/grpc.sock")
    try:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        return len(connection.recv(1)) == 1
    except ConnectionError:
        return False


def _is_let_in(connection: RawSeat) -> bool:
    try:
        return is_answered(connection)
    except grpc.RpcError:
        return False


def threads_of(worker: ServiceWorker) -> int:
    return len(os.listdir(f"/proc/{worker.pid}/task"))


def descriptors_of(worker: ServiceWorker) -> int:
    return len(os.listdir(f"/proc/{worker.pid}/fd"))
