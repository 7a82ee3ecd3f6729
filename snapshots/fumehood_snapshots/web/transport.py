"""One HTTP exchange through ``httpcore``, over connections that go to checked addresses and keep a deadline.

Knows nothing of redirects, robots or recordings.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore

from fumehood_snapshots.captures.capture import Headers
from fumehood_snapshots.errors import FetchFailed, FetchFailure

ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5"

FAILURES: dict[type[Exception], FetchFailure] = {
    httpcore.TimeoutException: FetchFailure.TIMED_OUT,
    httpcore.NetworkError: FetchFailure.CONNECTION_FAILED,
    httpcore.ProtocolError: FetchFailure.BROKEN_RESPONSE,
    httpcore.UnsupportedProtocol: FetchFailure.BAD_URL,
    httpcore.ProxyError: FetchFailure.CONNECTION_FAILED,
}
"""What each error of the library below means; every one of them is listed."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A response as received."""

    status: int
    headers: Headers
    body: bytes
    """Content encodings not undone."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that is so many seconds away."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left, none when it has passed."""
        return max(0.0, self.at - time.monotonic())

    def remaining(self, at_most: float | None = None) -> float:
        """Return the seconds left.

        Raises:
            httpcore.ReadTimeout: none are.
        """
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the deadline has passed")
        return left if at_most is None else min(left, at_most)


def exchange(
    url: str, addresses: Sequence[str], user_agent: str, deadline: Deadline, bytes_max: int
) -> Exchanged:
    """Send one GET request and read the response.

    Args:
        url: where to; already checked.
        addresses: of its host, checked, in the order to try; no other is connected to.
        user_agent: how to introduce ourselves.
        deadline: for everything together.
        bytes_max: of the body as received.

    Raises:
        FetchFailed: it took too long, was too large, or broke.
    """
    headers = [("Accept", ACCEPT), ("Accept-Encoding", "gzip, deflate"), ("User-Agent", user_agent)]
    try:
        with (
            httpcore.ConnectionPool(network_backend=_PinnedBackend(addresses, deadline)) as pool,
            pool.stream("GET", url, headers=headers) as response,
        ):
            if response.status < 200:
                raise FetchFailed(
                    FetchFailure.BROKEN_RESPONSE, f"the server answered {response.status}"
                )
            return Exchanged(response.status, _text(response.headers), _read(response, bytes_max))
    except tuple(FAILURES) as error:
        raise _failed(error, url) from error
    except (UnicodeError, ValueError) as error:
        raise FetchFailed(FetchFailure.BAD_URL, "the URL cannot be sent") from error


def _read(response: httpcore.Response, bytes_max: int) -> bytes:
    body = bytearray()
    for piece in response.iter_stream():
        body += piece
        if len(body) > bytes_max:
            raise FetchFailed(FetchFailure.TOO_LARGE, f"the page is larger than {bytes_max} bytes")
    return bytes(body)


def _text(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)


def _failed(error: Exception, url: str) -> FetchFailed:
    failure = next(FAILURES[kind] for kind in type(error).__mro__ if kind in FAILURES)
    sentences = {
        FetchFailure.TIMED_OUT: "the server did not answer in time",
        FetchFailure.CONNECTION_FAILED: "the connection failed or broke off",
        FetchFailure.BROKEN_RESPONSE: "what the server sent is not a whole HTTP response",
        FetchFailure.BAD_URL: "the URL cannot be fetched",
    }
    # Never the library's own words: they differ between releases, and a recording is compared.
    return FetchFailed(failure, sentences[failure])


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects to the pinned addresses of a host instead of looking its name up."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError("no address")
        for address in self._addresses:
            try:
                stream = self._sockets.connect_tcp(address, port, self._deadline.remaining(timeout))
                return _DeadlineStream(stream, self._deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class _DeadlineStream(httpcore.NetworkStream):
    """A connection on which no single wait outlasts the deadline, however slowly bytes drip."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.remaining(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.remaining(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(
            ssl_context, server_hostname, self._deadline.remaining(timeout)
        )
        return _DeadlineStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
