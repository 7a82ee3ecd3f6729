"""The ASGI application behind the HTTP socket of one seat."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fumehood.wire.http.connect import SERVICE, ConnectEndpoint
from fumehood.wire.http.listener import HttpLimits
from fumehood.wire.http.mcp import McpEndpoint, McpLines
from fumehood.wire.http.paths import FAILURE_STATUS, PathsEndpoint
from fumehood.wire.http.requests import CallQueue
from fumehood.wire.ports import SeatPort


@asynccontextmanager
async def seat_app(
    seat: SeatPort, threads: Executor, limits: HttpLimits, models: ASGIApp | None = None
) -> AsyncIterator[ASGIApp]:
    """Create the application of one seat.

    Args:
        seat: the seat to serve.
        threads: execute the calls.
        limits: limits for the agent.
        models: the application below ``/v1`` and ``/v1beta``; None without models.
    """
    calls = CallQueue(threads)
    connect = ConnectEndpoint(seat, calls, limits.body_bytes)
    paths = PathsEndpoint(seat, calls, limits.body_bytes)
    mcp = McpEndpoint(seat, calls, limits.body_bytes)
    routes: list[BaseRoute] = [
        Route(f"/{SERVICE}/{{method}}", connect.answer, methods=["POST"]),
        Route("/mcp", _Asgi(mcp.sessions.handle_request)),
        Route(
            "/mcp/line",
            McpLines(mcp.sessions.handle_request, limits.body_bytes).answer,
            methods=["POST"],
        ),
        Route("/task", paths.task),
        Route("/tools", paths.tools),
        Route("/left", paths.left),
        Route("/call/{tool:path}", paths.call, methods=["POST"]),
        Route("/submit", paths.submit, methods=["POST"]),
        Route("/give_up", paths.give_up, methods=["POST"]),
        Route("/stop", paths.stop, methods=["POST"]),
        Route("/report", paths.report, methods=["POST"]),
        Route("/permission", paths.permission, methods=["POST"]),
        *_models(models),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _wrong_method})
    # Without a Host header, the URL of a redirect would begin with the path of the socket on the
    # host.
    app.router.redirect_slashes = False
    async with mcp.sessions.run():
        yield _CountRefused(app, seat.count_refused)


class _CountRefused:
    """Counts the bytes of requests that get an error or no response."""

    def __init__(self, app: ASGIApp, count_refused: Callable[[int], None]) -> None:
        self._app = app
        self._count_refused = count_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 0
        headers = scope.get("headers", ())
        size = sum(len(name) + len(value) for name, value in headers)
        # A body that the application does not read arrives nevertheless.
        declared = dict(headers).get(b"content-length", b"0")
        body_size = 0

        async def counted_receive() -> Message:
            nonlocal body_size
            message = await receive()
            body_size += len(message.get("body", b""))
            return message

        async def noted_send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, counted_receive, noted_send)
        finally:
            # A failed call is no refusal: it was executed and charged.
            if (status >= 400 and status != FAILURE_STATUS) or status == 0:
                self._count_refused(size + max(body_size, int(declared)))


class _Asgi:
    """Wraps a bound method: a route would treat the bare method as an endpoint function."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _models(models: ASGIApp | None) -> Sequence[BaseRoute]:
    # Paths of Gemini begin with /v1beta.
    return [] if models is None else [Mount("/v1", models), Mount("/v1beta", models)]


async def _not_found(request: Request, _error: Exception) -> Response:
    # request.url would contain the path of the socket, for the same reason.
    path = request.scope["path"]
    return JSONResponse({"code": "not_found", "message": f"no such path: {path}"}, 404)


async def _wrong_method(request: Request, error: Exception) -> Response:
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    allowed = headers.get("Allow", "another method")
    message = f"this path does not take {request.method}: use {allowed}"
    return JSONResponse({"code": "wrong_method", "message": message}, 405, headers)
