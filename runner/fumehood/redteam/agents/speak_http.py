"""A raw HTTP client for a seat's HTTP socket, for requests that no client library sends."""

from __future__ import annotations

import json
import os
import socket

from attempts import SOCKET

HTTP_SOCKET = os.path.join(os.path.dirname(SOCKET), "http.sock")
TIMEOUT_S = 5.0


def connect() -> socket.socket:
    """Return a connection."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT_S)
    connection.connect(HTTP_SOCKET)
    return connection


def request(method: str, path: str, body: bytes = b"", *heads: str) -> bytes:
    """Return a request; ``heads`` replace the content length."""
    lines = (
        f"{method} {path} HTTP/1.1",
        "host: box",
        *(heads or (f"content-length: {len(body)}",)),
    )
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def greeting(client: str) -> bytes:
    """Return a request that opens a session of MCP, with the name of a client."""
    parameters = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}
    body = json.dumps(message).encode()
    heads = (
        f"content-length: {len(body)}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
    )
    return request("POST", "/mcp", body, *heads)


def talk(octets: bytes, timeout_s: float = TIMEOUT_S) -> bytes:
    """Send any bytes and return what arrives within a time."""
    received = b""
    with connect() as connection:
        connection.settimeout(timeout_s)
        try:
            connection.sendall(octets)
            while piece := connection.recv(65536):
                received += piece
        except OSError:
            pass
    return received


def ask(method: str, path: str, body: bytes = b"") -> str:
    """Return the status of a request, or ``hung up on``."""
    length = f"content-length: {len(body)}"
    return status_of(talk(request(method, path, body, length, "connection: close")))


def status_of(received: bytes) -> str:
    """Return the status of a response, or ``hung up on``."""
    return (
        received[9:12].decode("ascii", "replace") if received.startswith(b"HTTP/") else "hung up on"
    )
