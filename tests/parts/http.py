"""Plain HTTP over a seat's second socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any

TIMEOUT_S = 20.0


class UnixConnection(HTTPConnection):
    """Python's own client, on a Unix socket."""

    def __init__(self, path: str, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class HttpSeat:
    """One connection to one seat's HTTP socket."""

    def __init__(self, directory: str) -> None:
        self.connection = UnixConnection(f"{directory}/http.sock")

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def send(
        self,
        path: str,
        body: bytes | str,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> tuple[int, bytes]:
        """Send one request and return status and body of the answer."""
        return read(self.open(path, body, headers, method))

    def open(
        self,
        path: str,
        body: bytes | str,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> HTTPResponse:
        """Send one request and return the answer, of which only the head was read."""
        self.connection.request(
            method, path, body, {"content-type": "application/json", **(headers or {})}
        )
        return self.connection.getresponse()

    def rpc(self, method: str, message: Mapping[str, Any]) -> tuple[int, Any]:
        """Call one method of the contract."""
        status, body = self.send(f"/fumehood.v1.ToolService/{method}", json.dumps(message))
        return status, json.loads(body)


def read(answer: HTTPResponse) -> tuple[int, bytes]:
    """Return status and body."""
    return answer.status, answer.read()
