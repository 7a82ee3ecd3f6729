"""The server of ``fumehood watch``: only the token and the right Host header read a page."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from fumehood.cli import page_server
from fumehood.cli.page_server import PageServer, Served

PAGE = b"<!doctype html><title>page</title>"


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(Served({"": PAGE, "report_episodes/1.html": b"part"}, {"text": "new"})) as own:
        yield own


def ask(
    server: PageServer, path: str, *, method: str = "GET", host: str | None = None
) -> HTTPResponse:
    connection = HTTPConnection(page_server.HOST, server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    return connection.getresponse()


def wait_until_free(server: PageServer) -> None:
    ends_at = time.monotonic() + 10
    while server.served.listeners:
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def test_it_listens_only_on_the_loopback_interface(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_the_address_with_the_token_shows_the_pages(server: PageServer) -> None:
    answer = ask(server, f"/{server.token}/")
    assert (answer.status, answer.read()) == (200, PAGE)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert ask(server, f"/{server.token}/report_episodes/1.html").read() == b"part"
    assert server.url.endswith(f"/{server.token}/")


def test_a_request_for_the_head_of_a_page_gets_no_body(server: PageServer) -> None:
    answer = ask(server, f"/{server.token}/", method="HEAD")
    assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(PAGE)))
    assert answer.read() == b""


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/wrong/",
        "/{token}",
        "/{token}x/",
        "/{token}/missing.html",
        "/{token}/../../etc/passwd",
        "/{token}/..%2f..%2fetc%2fpasswd",
        "/{token}//etc/passwd",
        "/{token}/report_episodes/",
        "/{token}/?x=1",
        "/\u00e9/",
        "http://127.0.0.1/{token}/",
    ],
)
def test_every_other_path_is_unknown(server: PageServer, path: str) -> None:
    path = path.format(token=server.token)
    with socket.create_connection((page_server.HOST, server.server_port), timeout=10) as raw:
        host = f"127.0.0.1:{server.server_port}"
        raw.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        status = raw.makefile("rb").readline()
    assert b" 404 " in status


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:{port}", "127.0.0.1"])
def test_another_host_name_is_refused_even_with_the_token(server: PageServer, host: str) -> None:
    answer = ask(server, f"/{server.token}/", host=host.format(port=server.server_port))
    assert answer.status == 421
    assert PAGE not in answer.read()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_is_read_only(server: PageServer, method: str) -> None:
    assert ask(server, f"/{server.token}/", method=method).status == 405


def test_a_listener_gets_the_last_and_each_new_state(server: PageServer) -> None:
    answer = ask(server, f"/{server.token}/events")
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert _next_state(answer) == {"text": "new"}
    server.served.show({"": b"second"}, {"text": "newer"})
    assert _next_state(answer) == {"text": "newer"}
    assert ask(server, f"/{server.token}/").read() == b"second"
    answer.close()


def test_listeners_cannot_take_all_connections(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "LISTENERS_MAX", 2)
    listeners = [ask(server, f"/{server.token}/events") for _ in range(2)]
    assert ask(server, f"/{server.token}/events").status == 503
    assert ask(server, f"/{server.token}/").status == 200
    for listener in listeners:
        listener.close()
    server.served.show({}, {})


@pytest.mark.slow
def test_connections_are_bounded_and_their_places_are_freed() -> None:
    with PageServer(Served({"": PAGE})) as server:
        idle = [
            socket.create_connection((page_server.HOST, server.server_port), timeout=10)
            for _ in range(page_server.CONNECTIONS_MAX)
        ]
        with pytest.raises((ConnectionError, OSError)):
            ask(server, f"/{server.token}/").read()
        for connection in idle:
            connection.close()
        ends_at = time.monotonic() + 10
        while True:
            try:
                assert ask(server, f"/{server.token}/").status == 200
                break
            except OSError:
                assert time.monotonic() < ends_at
                time.sleep(0.01)


def test_the_end_of_the_server_lets_listeners_go() -> None:
    with PageServer(Served({"": PAGE}, {"text": "new"})) as server:
        answer = ask(server, f"/{server.token}/events")
        _next_state(answer)
    assert answer.read().strip() in (b"", b":")
    wait_until_free(server)
    with pytest.raises(OSError, match="refused"):
        ask(server, f"/{server.token}/")


def test_two_servers_have_different_tokens() -> None:
    with PageServer(Served()) as one, PageServer(Served()) as other:
        assert one.token != other.token
        assert len(one.token) >= 32


def _next_state(answer: HTTPResponse) -> object:
    while not (line := answer.readline()).startswith(b"data: "):
        assert line, "the server ended the events"
    return json.loads(line.removeprefix(b"data: "))
