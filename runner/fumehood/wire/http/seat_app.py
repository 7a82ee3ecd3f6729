"""The application behind one seat's HTTP socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fumehood.wire.http.connect import SERVICE, ConnectDoor
from fumehood.wire.http.listener import HttpLimits
from fumehood.wire.http.mcp_door import McpDoor
from fumehood.wire.http.mcp_lines import McpLines
from fumehood.wire.http.plain import PlainDoor
from fumehood.wire.http.turns import Turns
from fumehood.wire.ports import SeatPort


@asynccontextmanager
async def seat_app(
    seat: SeatPort, threads: Executor, limits: HttpLimits, models: ASGIApp | None = None
) -> AsyncIterator[ASGIApp]:
    """Make the application of one seat.

    Args:
        seat: whom to serve.
        threads: in which calls are carried out.
        limits: what the agent may send.
        models: answers below ``/v1``; None where there are no models.
    """
    turns = Turns(threads)
    connect = ConnectDoor(seat, turns, limits.body_bytes)
    plain = PlainDoor(seat, turns, limits.body_bytes)
    mcp = McpDoor(seat, turns, limits.body_bytes)
    routes: list[BaseRoute] = [
        Route(f"/{SERVICE}/{{method}}", connect.answer, methods=["POST"]),
        Route("/mcp", _Asgi(mcp.sessions.handle_request)),
        Route(
            "/mcp/line",
            McpLines(mcp.sessions.handle_request, limits.body_bytes).answer,
            methods=["POST"],
        ),
        Route("/task", plain.task),
        Route("/tools", plain.tools),
        Route("/left", plain.left),
        Route("/call/{tool:path}", plain.call, methods=["POST"]),
        Route("/submit", plain.submit, methods=["POST"]),
        Route("/give_up", plain.give_up, methods=["POST"]),
        *_models(models),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found})
    # A redirect is made of a URL, which without a host header begins with the socket's own path on the host.
    app.router.redirect_slashes = False
    async with mcp.sessions.run():
        yield app


class _Asgi:
    """An application by class, because a route takes a bound method for an endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _models(models: ASGIApp | None) -> Sequence[BaseRoute]:
    return [] if models is None else [Mount("/v1", models)]


async def _not_found(request: Request, _error: Exception) -> Response:
    # Not of request.url, for the same reason.
    path = request.scope["path"]
    return JSONResponse({"code": "not_found", "message": f"nothing is at {path}"}, 404)
