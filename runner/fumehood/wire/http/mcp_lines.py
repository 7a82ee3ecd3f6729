"""MCP's stdio transport, a line a request: what a program that only copies lines cannot know, is added here.

A line has no headers and an answer on a pipe no status. So the headers that the HTTP transport asks for are
taken from the message, and an answer that was refused for its form still says which request it answers:
clients that try the newest revision first wait for just that before they try another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope

from fumehood.wire.http.body import TooLarge, read_body

SESSION_HEADER = "mcp-session-id"
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""Where a message of a revision without sessions says which it is."""


class McpLines:
    """In front of the HTTP transport of one seat."""

    def __init__(self, transport: ASGIApp, body_bytes: int) -> None:
        self._transport = transport
        self._body_bytes = body_bytes

    async def answer(self, request: Request) -> Response:
        """Answer one line with one line, or with nothing."""
        try:
            line = await read_body(request, self._body_bytes)
        except TooLarge:
            return _said(
                {"code": -32600, "message": f"a line has at most {self._body_bytes} bytes"}, None
            )
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _said({"code": -32700, "message": "not JSON"}, None)
        message = message if isinstance(message, dict) else {}
        session = request.headers.get(SESSION_HEADER, "")
        status, headers, body = await self._post(request, line, [*_headers(message, session)])
        if status >= 400:
            error = _error_of(body)
            return _said(error, message["id"]) if "id" in message else Response(status_code=202)
        kept = {SESSION_HEADER: headers[SESSION_HEADER]} if SESSION_HEADER in headers else {}
        return Response(body, status, kept, "application/json")

    async def _post(
        self, request: Request, line: bytes, headers: list[tuple[bytes, bytes]]
    ) -> tuple[int, dict[str, str], bytes]:
        """Hand a line to the HTTP transport and return what it says."""
        scope: Scope = {**request.scope, "path": "/mcp", "raw_path": b"/mcp", "headers": headers}
        said: list[Message] = []
        left = iter([{"type": "http.request", "body": line, "more_body": False}])
        receive: Receive = request.receive

        async def read() -> Message:
            return next(left, None) or await receive()

        async def send(message: Message) -> None:
            said.append(message)

        await self._transport(scope, read, send)
        start = said[0]
        answered = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]
        }
        return start["status"], answered, b"".join(part.get("body", b"") for part in said[1:])


def _headers(message: dict[str, Any], session: str) -> Iterator[tuple[bytes, bytes]]:
    yield b"host", b"box"
    yield b"content-type", b"application/json"
    yield b"accept", b"application/json, text/event-stream"
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    if not isinstance(version, str):
        if session:
            yield SESSION_HEADER.encode(), session.encode("latin-1")
        return
    routed = {
        "mcp-protocol-version": version,
        "mcp-method": message.get("method"),
        "mcp-name": params.get("name"),
    }
    for name, value in routed.items():
        if isinstance(value, str) and value.isascii() and value.isprintable():
            yield name.encode(), value.encode()


def _error_of(body: bytes) -> dict[str, Any]:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        error = None
    return error if isinstance(error, dict) else {"code": -32600, "message": "refused"}


def _said(error: dict[str, Any], number: Any) -> Response:
    text = json.dumps({"jsonrpc": "2.0", "id": number, "error": error})
    return Response(text, media_type="application/json")
