"""Sends one HTTP request with ``httpcore`` to checked addresses, within a deadline.

Redirects, robots and recordings are handled elsewhere.
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
"""Meaning of each error of ``httpcore``; the table is complete."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A response as received."""

    status: int
    headers: Headers
    body: bytes
    """Body with its content encodings."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline after a number of seconds."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left; 0 after the deadline."""
        return max(0.0, self.at - time.monotonic())

    def remaining(self, at_most: float | None = None) -> float:
        """Return the seconds left.

        Raises:
            httpcore.ReadTimeout: the deadline has passed.
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
        url: checked URL.
        addresses: checked addresses of its host, in the order to try.
        user_agent: value of the header ``User-Agent``.
        deadline: deadline of the whole exchange.
        bytes_max: maximum size of the received body.

    Raises:
        FetchFailed: it took too long, was too large, or failed.
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
        FetchFailure.CONNECTION_FAILED: "the connection failed or was interrupted",
        FetchFailure.BROKEN_RESPONSE: "the server sent an incomplete HTTP response",
        FetchFailure.BAD_URL: "the URL cannot be fetched",
    }
    # Not the library's text, which changes between releases and would change recordings.
    return FetchFailed(failure, sentences[failure])


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects to the pinned addresses of a host without resolving its name."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self._addresses, self._deadline = addresses, deadline
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
    """A connection on which every wait ends at the deadline."""

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
