"""The way to a Docker daemon's socket, where the SDK's own way does not serve.

The SDK keeps connections by the whole address of a question, so none is ever used twice; it gives an
attached stream only with the deadline of its connection, though silence is no failure; and a client that
finds nobody at first leaves its connection open.
"""

from __future__ import annotations

import socket
from typing import Any

from docker.transport import UnixHTTPAdapter

_CONNECTIONS_MAX = 64
"""Kept open between questions."""
_HEAD_BYTES_MAX = 64 * 1024


class OnePool(UnixHTTPAdapter):
    """Keeps connections by the daemon they lead to."""

    def __init__(self, path: str, deadline_s: int) -> None:
        super().__init__(f"http+unix://{path}", deadline_s, max_pool_size=_CONNECTIONS_MAX)

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """Return the one pool, whatever the address."""
        return super().get_connection("http+docker://localhost", proxies)


def api_version(path: str, deadline_s: float) -> str:
    """Ask the daemon at ``path`` which version of the Docker Engine API it speaks.

    Raises:
        OSError: nobody answers, or somebody who is no Docker daemon.
    """
    stream, head = _ask(path, ["GET /_ping HTTP/1.1", "Connection: close"], deadline_s)
    stream.close()
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "api-version":
            return value.strip()
    raise ConnectionError("whoever answers is no Docker engine")


def hijack(path: str, address: str, deadline_s: float) -> socket.socket:
    """Turn a question into a plain stream without a deadline.

    Args:
        path: of the daemon's socket.
        address: of the question, with its version.
        deadline_s: for the daemon to agree.

    Raises:
        OSError: it does not.
    """
    question = [f"POST {address} HTTP/1.1", "Connection: Upgrade", "Upgrade: tcp"]
    stream, head = _ask(path, question, deadline_s)
    status = head.partition("\r\n")[0]
    if " 101 " not in status:
        stream.close()
        raise ConnectionError(status)
    stream.settimeout(None)
    return stream


def _ask(path: str, question: list[str], deadline_s: float) -> tuple[socket.socket, str]:
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.settimeout(deadline_s)
        stream.connect(path)
        stream.sendall("\r\n".join([*question, "Host: docker", "", ""]).encode())
        return stream, _read_head(stream)
    except OSError:
        stream.close()
        raise


def _read_head(stream: socket.socket) -> str:
    # What is attached to has not been started yet, so no part of its stream comes in the same piece.
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES_MAX:
        piece = stream.recv(4096)
        if not piece:
            raise ConnectionResetError("the connection was closed")
        head += piece
    return head.decode("latin-1")
