"""A seat that sends too many bytes of refused messages loses its sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import grpc
import pytest

from fumehood.core.outcome import AgentCrashed, Finished
from fumehood.core.trace import verify_chain
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.service.seat_endpoint import REFUSED_BYTES_PER_S
from fumehood_agent.session import Session
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.raw_seat import socket_dir
from tests.parts.specs import episode_spec

REFUSED_BYTES = 100_000
MESSAGES_MAX = 100
"""Enough to exceed the limit with each kind of message."""
SIZE = 20_000


@pytest.fixture(scope="module")
def pool() -> Iterator[ServicePool]:
    with ServicePool(
        1, ServiceOptions(http=HttpOffer(), limits={"refused_bytes": REFUSED_BYTES})
    ) as services:
        yield services


def _malformed_arguments(episode: Listened) -> None:
    with socket_dir(episode.directory) as connection:
        connection.send("get_account", "[" * SIZE)


def _malformed_message(episode: Listened) -> None:
    with socket_dir(episode.directory) as connection:
        method = "/fumehood.v1.ToolService/CallTool"
        connection.channel.unary_unary(method, None, None)(b"\xff" * SIZE, timeout=5)


def _http(episode: Listened, request: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(f"{episode.directory}/http.sock")
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def _post(path: str, size: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()


def _unknown_path(episode: Listened) -> None:
    _http(episode, _post("/nothing", SIZE) + b"x" * SIZE)


def _body_that_is_cut_off(episode: Listened) -> None:
    _http(episode, _post("/call/get_account", 2 * SIZE) + b"x" * SIZE)


def _no_http(episode: Listened) -> None:
    _http(episode, b"x" * SIZE)


def _head_that_is_cut_off(episode: Listened) -> None:
    _http(episode, b"GET /task HTTP/1.1\r\nx: " + b"x" * SIZE)


MESSAGES: dict[str, Callable[[Listened], None]] = {
    "malformed arguments over gRPC": _malformed_arguments,
    "a malformed message over gRPC": _malformed_message,
    "a body for an unknown path": _unknown_path,
    "a body that is cut off": _body_that_is_cut_off,
    "bytes that are not HTTP": _no_http,
    "a head that is cut off": _head_that_is_cut_off,
}


@pytest.mark.slow
@pytest.mark.parametrize("message", MESSAGES)
def test_beyond_the_limit_the_sockets_close(pool: ServicePool, message: str) -> None:
    spec = episode_spec(episode_id=message)
    with pool.lease() as client, listening(client, spec) as episode:
        sent = 0
        while not episode.ended_seats and sent < MESSAGES_MAX:
            sent += 1
            try:
                MESSAGES[message](episode)
            except (grpc.RpcError, OSError):
                wait_until(lambda: bool(episode.ended_seats), 0.2)
        assert sent > REFUSED_BYTES // (3 * SIZE), "messages below the limit are harmless"
        assert wait_until(lambda: bool(episode.ended_seats))
        for name in ("grpc.sock", "http.sock"):
            with (
                socket.socket(socket.AF_UNIX) as connection,
                pytest.raises((FileNotFoundError, ConnectionRefusedError)),
            ):
                connection.connect(f"{episode.directory}/{name}")
    verify_chain(episode.records)
    assert episode.evidence.ends["agent"] == AgentCrashed(
        f"it sent more than {REFUSED_BYTES} bytes of refused messages"
    )


@pytest.mark.slow
def test_replies_to_refused_messages_have_a_limited_rate() -> None:
    size = REFUSED_BYTES_PER_S // 32
    spec = episode_spec(episode_id="rate")
    with (
        ServicePool(1, ServiceOptions(http=HttpOffer())) as services,
        services.lease() as client,
        listening(client, spec) as episode,
        socket_dir(episode.directory) as connection,
    ):
        begun_s = time.monotonic()
        for _ in range(8):
            connection.send("get_account", "[" * size)
        taken_s = time.monotonic() - begun_s
    assert taken_s >= 8 * size / REFUSED_BYTES_PER_S


@pytest.mark.slow
def test_a_seat_that_causes_a_large_trace_loses_its_sockets() -> None:
    limits = {"trace_bytes": REFUSED_BYTES}
    spec = episode_spec(episode_id="large")
    with (
        ServicePool(1, ServiceOptions(http=HttpOffer(), limits=limits)) as services,
        services.lease() as client,
        listening(client, spec) as episode,
    ):
        sent = 0
        with Session(f"{episode.directory}/grpc.sock") as session:
            while not episode.ended_seats and sent < MESSAGES_MAX:
                sent += 1
                try:
                    session.call("update_account", {"id": "ax1", "patch": {"note": "x" * SIZE}})
                except Exception:
                    break
                wait_until(lambda: bool(episode.ended_seats), 0.3)
        assert wait_until(lambda: bool(episode.ended_seats))
        assert sent < MESSAGES_MAX
    verify_chain(episode.records)
    assert episode.evidence.ends["agent"] == AgentCrashed(
        f"it caused a trace of more than {REFUSED_BYTES} bytes"
    )


def test_valid_messages_are_not_counted(pool: ServicePool) -> None:
    spec = episode_spec(episode_id="valid")
    with pool.lease() as client, listening(client, spec) as episode:
        with Session(f"{episode.directory}/grpc.sock") as session:
            for _ in range(10):
                session.call("update_account", {"id": "ax1", "patch": {"note": "x" * SIZE}})
            session.submit("done")
        episode.close()
    assert episode.evidence.ends["agent"] == Finished("done")
