"""HTTP servers on loopback, well-behaved and misbehaving."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import pytest

from fumehood_snapshots.errors import FetchFailed, FetchFailure
from fumehood_snapshots.web.fetcher import LiveFetcher
from fumehood_snapshots.web.policy import FetchPolicy

Behaviour = Callable[[socket.socket], None]
"""Answers one request on an open connection, however it likes."""

Route = Behaviour | bytes | str
"""A behaviour, a whole response, or the HTML of a page."""


def page(body: str | bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole response; underscores in header names become dashes."""
    content = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(content))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n".encode() + content


def redirect(target: str) -> bytes:
    """Return a response that leads elsewhere."""
    return page("", "302 Found", Location=target)


class Site:
    """One server and what it was asked."""

    def __init__(self, port: int, routes: dict[str, Route]) -> None:
        self.port = port
        self.routes = routes
        """Path with query → answer; may be changed while the server runs."""
        self.requests: list[str] = []
        """Heads of all requests, in order."""

    @property
    def url(self) -> str:
        """Where the server is, without a final slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [request.split(" ")[1] for request in self.requests]

    def policy(self, **changes: object) -> FetchPolicy:
        """Return a policy that allows this server, which takes saying so twice."""
        settings = {
            "hosts": (f"127.0.0.1:{self.port}",),
            "private_hosts": (f"127.0.0.1:{self.port}",),
            "seconds_max": 5.0,
        }
        return FetchPolicy.model_validate({**settings, **changes})

    def answer(self, connection: socket.socket) -> None:
        """Read a request and answer it."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(4096)
            if not piece:
                return
            head += piece
        request = head.decode("latin-1")
        self.requests.append(request)
        route = self.routes.get(request.split(" ")[1], page("not here", "404 Not Found"))
        if callable(route):
            route(connection)
        else:
            connection.sendall(route if isinstance(route, bytes) else page(route))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False


@contextmanager
def serving(routes: Mapping[str, Route] | None = None) -> Iterator[Site]:
    """Run a server until the block ends."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            # Some tests close the connection early.
            with suppress(OSError):
                site.answer(self.request)

    with _Server(("127.0.0.1", 0), Handler) as server:
        site = Site(server.server_address[1], dict(routes or {}))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def article(topic: str, *links: str) -> str:
    """Return the HTML of a page with enough text to be one."""
    anchors = "".join(f'<a href="{link}">more</a> ' for link in links)
    return (
        f"<html><head><title>About {topic}</title></head><body><article><h1>{topic}</h1>"
        f"<p>This page says at length what is known about {topic}, and a little more than that.</p>"
        f"<p>There is no better page about {topic} than this one. {anchors}</p>"
        "</article></body></html>"
    )


def failure_of(fetcher: LiveFetcher, url: str) -> FetchFailure:
    """Fetch what cannot be fetched, and return why."""
    with pytest.raises(FetchFailed) as caught:
        fetcher.fetch(url)
    assert "\n" not in str(caught.value)
    return caught.value.failure
