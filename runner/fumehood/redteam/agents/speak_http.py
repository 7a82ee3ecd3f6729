"""A raw HTTP client for a seat's HTTP socket, for requests that no client library sends."""

from __future__ import annotations

import os
import socket

from attempts import SOCKET

HTTP_SOCKET = os.path.join(os.path.dirname(SOCKET), "http.sock")
PATIENCE_S = 5.0


def connect() -> socket.socket:
    """Return a connection."""
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(PATIENCE_S)
    one.connect(HTTP_SOCKET)
    return one


def request(method: str, path: str, body: bytes = b"", *heads: str) -> bytes:
    """Return a request; ``heads`` take the place of the usual length."""
    lines = (
        f"{method} {path} HTTP/1.1",
        "host: box",
        *(heads or (f"content-length: {len(body)}",)),
    )
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def talk(octets: bytes, timeout_s: float = PATIENCE_S) -> bytes:
    """Send anything and return what comes within a time."""
    heard = b""
    with connect() as one:
        one.settimeout(timeout_s)
        try:
            one.sendall(octets)
            while piece := one.recv(65536):
                heard += piece
        except OSError:
            pass
    return heard


def ask(method: str, path: str, body: bytes = b"") -> str:
    """Return the status of a request, or how it was not answered."""
    length = f"content-length: {len(body)}"
    return status_of(talk(request(method, path, body, length, "connection: close")))


def status_of(heard: bytes) -> str:
    """Return the status of an answer."""
    return heard[9:12].decode("ascii", "replace") if heard.startswith(b"HTTP/") else "hung up on"
