"""A live fetch ends in time for every behaviour of a server, with a page or a reason."""

from __future__ import annotations

import gzip
import inspect
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import httpcore
import pytest

from fumehood_snapshots.errors import FetchFailure
from fumehood_snapshots.web.fetcher import LiveFetcher
from fumehood_snapshots.web.policy import FetchPolicy
from fumehood_snapshots.web.transport import FAILURES
from tests.unit.snapshots.sites import Site, failure_of, page


def _drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b"x")
        time.sleep(0.02)


def _endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(100_000):
        connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")


def _endless_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000_000):
        connection.sendall(b"X-%d: y\r\n" % number)


def _stall(connection: socket.socket) -> None:
    time.sleep(2)


def _drop(connection: socket.socket) -> None:
    connection.close()


TWO_LENGTHS = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345"
GZIP_BOMB = gzip.compress(bytes(50_000_000))


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        (_stall, FetchFailure.TIMED_OUT),
        (_drip, FetchFailure.TIMED_OUT),
        (_drop, FetchFailure.BROKEN_RESPONSE),
        (page("x" * 10, Content_Length="99"), FetchFailure.BROKEN_RESPONSE),
        (TWO_LENGTHS, FetchFailure.BROKEN_RESPONSE),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", FetchFailure.BROKEN_RESPONSE),
        (_endless_headers, FetchFailure.BROKEN_RESPONSE),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", FetchFailure.BROKEN_RESPONSE),
        (page("x" * 200_001), FetchFailure.TOO_LARGE),
        (_endless, FetchFailure.TOO_LARGE),
        (page(GZIP_BOMB, Content_Encoding="gzip"), FetchFailure.TOO_LARGE),
        (page("not packed", Content_Encoding="gzip"), FetchFailure.BROKEN_RESPONSE),
        (page("secret", Content_Encoding="br"), FetchFailure.BROKEN_RESPONSE),
    ],
    ids=[
        "stalls", "slow bytes", "drops", "length too large", "two lengths", "no web server",
        "endless head", "switches protocols", "too large", "endless", "gzip bomb",
        "wrong encoding", "unknown encoding",
    ],
)  # fmt: skip
def test_a_server_that_misbehaves_gives_a_failure_in_time(
    site: Site, behaviour: bytes, failure: FetchFailure
) -> None:
    site.routes["/bad"] = behaviour
    fetcher = LiveFetcher(site.policy(seconds_max=1.0, body_bytes_max=200_000, obey_robots=False))
    started = time.monotonic()
    assert failure_of(fetcher, f"{site.url}/bad") is failure
    assert time.monotonic() - started < 4


@pytest.mark.slow
def test_a_slow_name_resolution_times_out_and_blocks_no_other(site: Site) -> None:
    answered = threading.Event()

    def resolve(name: str) -> list[str]:
        if name == "slow.example":
            answered.wait(30)
        return ["127.0.0.1"]

    names = [f"{name}.example:{site.port}" for name in ("slow", "quick")]
    policy = site.policy(
        hosts=names,
        private_hosts=names,
        seconds_max=1.0,
        obey_robots=False,
    )
    site.routes["/owls"] = page("owls")
    fetcher = LiveFetcher(policy, resolve=resolve)
    said: list[FetchFailure] = []
    slow = threading.Thread(
        target=lambda: said.append(failure_of(fetcher, f"http://slow.example:{site.port}/owls"))
    )
    started = time.monotonic()
    slow.start()
    assert fetcher.fetch(f"http://quick.example:{site.port}/owls").body == b"owls"
    assert time.monotonic() - started < 0.9
    slow.join()
    assert said == [FetchFailure.TIMED_OUT]
    assert time.monotonic() - started < 4
    answered.set()
    assert fetcher.fetch(f"http://slow.example:{site.port}/owls").body == b"owls"


def test_a_failed_name_resolution_is_repeated(site: Site) -> None:
    answers: list[list[str]] = [[], ["127.0.0.1"]]
    policy = site.policy(
        hosts=(f"a.example:{site.port}",), private_hosts=(f"a.example:{site.port}",)
    )
    fetcher = LiveFetcher(policy, resolve=lambda name: answers.pop(0))
    assert (
        failure_of(fetcher, f"http://a.example:{site.port}/owls") is FetchFailure.NAME_NOT_RESOLVED
    )
    assert fetcher.fetch(f"http://a.example:{site.port}/owls").status == 200


def test_bytes_beyond_the_content_length_are_not_read(site: Site) -> None:
    site.routes["/short"] = page("twelve bytes and more", Content_Length="12")
    assert LiveFetcher(site.policy()).fetch(f"{site.url}/short").body == b"twelve bytes"


def test_a_closed_port_is_a_failed_connection(site: Site) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        name = f"127.0.0.1:{port}"
        policy = site.policy(hosts=(name,), private_hosts=(name,), obey_robots=False)
        fetcher = LiveFetcher(policy)
        assert failure_of(fetcher, f"http://127.0.0.1:{port}/") is FetchFailure.CONNECTION_FAILED


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
         "-out", certificate,
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    received: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    received.append(secured.recv(4096))
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        policy = FetchPolicy(
            hosts=(address,), private_hosts=(address,), obey_robots=False, seconds_max=5
        )
        assert (
            failure_of(LiveFetcher(policy), f"https://{address}/") is FetchFailure.CONNECTION_FAILED
        )
        thread.join()
    assert received in ([], [b""])


def test_every_error_of_the_http_library_has_a_failure() -> None:
    raised = {
        kind
        for _, kind in inspect.getmembers(httpcore, inspect.isclass)
        if issubclass(kind, Exception) and kind is not httpcore.ConnectionNotAvailable
    }
    assert {kind for kind in raised if not issubclass(kind, tuple(FAILURES))} == set()
    assert set(FAILURES.values()) <= set(FetchFailure)
