"""A Unix socket that speaks HTTP/1.1 from the first connection on.

Until somebody connects it is a bound socket and nothing else: no application, no thread, no task. uvicorn's
protocol does the talking; what one agent may do to it is bounded here, because uvicorn's own bounds are
those of a server behind another server.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from fumehood.wire.http.loop_thread import LoopThread

Message = MutableMapping[str, Any]
App = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[Message]],
        Callable[[Message], Awaitable[None]],
    ],
    Awaitable[None],
]
"""An ASGI application."""
AppMaker = Callable[[], AbstractAsyncContextManager[App]]
"""Makes the application of one socket; left again when the socket is closed."""

STOP_TIMEOUT_S = 5.0
IDLE_S = 24 * 60 * 60
"""Until a connection that says nothing is hung up on; an agent may think for long between two calls."""
RETRY_S = 0.1
"""Until a socket that could not be accepted from, for want of descriptors, is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one agent may do to its HTTP socket."""

    connections: int = 64
    """Open at once; more are hung up on."""
    head_bytes: int = 64 * 1024
    """Of one request's first line and headers together; beyond, the connection is hung up on."""
    body_bytes: int = 4 * 1024 * 1024
    """Of one request to the tools."""
    request_bytes: int = 64 * 1024 * 1024
    """Of one request in all, with whatever still comes when it was refused; beyond, it is hung up on."""
    pipelined_requests: int = 8
    """Requests of one connection that wait behind one that is not answered yet; beyond, it is hung up on."""


class HttpListener:
    """Serves one application on one Unix socket."""

    def __init__(
        self, path: Path, make_app: AppMaker, loop: LoopThread, limits: HttpLimits
    ) -> None:
        """Listen at once.

        Args:
            path: where to listen, at most 107 bytes.
            make_app: entered at the first connection.
            loop: where everything happens.
            limits: what the agent may do.

        Raises:
            OSError: the socket cannot be bound.
        """
        self._make_app = make_app
        self._thread = loop
        self._loop = loop.loop
        self._limits = limits
        self._state = ServerState()
        self._arriving = 0
        """Connections that were accepted and are not in the hands of the protocol yet."""
        self._serving: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._app: asyncio.Future[App] | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(str(path))
            self._socket.listen(limits.connections)
        except OSError:
            self._socket.close()
            raise
        loop.soon(self._watch)

    def stop(self) -> None:
        """Drop every connection at once; returns when nothing of it is left."""
        with suppress(TimeoutError):
            self._thread.wait_for(self._stop(), STOP_TIMEOUT_S)

    def _watch(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:
            # It stays readable, so without a pause this would be all that the loop does.
            self._loop.remove_reader(self._socket.fileno())
            self._loop.call_later(RETRY_S, self._watch)
            return
        if len(self._state.connections) + self._arriving >= self._limits.connections:
            connection.close()
            return
        self._arriving += 1
        if self._serving is None:
            self._app = self._loop.create_future()
            self._serving = self._loop.create_task(self._serve(self._app))
        self._keep(self._loop.create_task(self._greet(connection)))

    async def _greet(self, connection: socket.socket) -> None:
        assert self._app is not None
        try:
            await self._hand_over(connection, await asyncio.shield(self._app))
        finally:
            self._arriving -= 1

    async def _hand_over(self, connection: socket.socket, app: App) -> None:
        config = Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=IDLE_S,
        )
        await self._loop.connect_accepted_socket(
            lambda: _Protocol(config, self._state, self._limits, self._loop), connection
        )

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    async def _serve(self, made: asyncio.Future[App]) -> None:
        try:
            async with self._make_app() as app:
                made.set_result(app)
                await self._stopped.wait()
        except Exception as error:
            if made.done():
                raise
            made.set_exception(error)

    async def _stop(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
        for connection in list(self._state.connections):
            connection.transport.abort()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        self._stopped.set()
        left = [*tasks, self._serving] if self._serving else tasks
        await asyncio.gather(*left, return_exceptions=True)


class _TooManyPipelined(Exception):
    """Ends the parsing of what has come already, which is all that can be large of it."""


class _Protocol(HttpToolsProtocol):
    """uvicorn's, with bounds for what comes before a body, and for what never ends: llhttp has none."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        limits: HttpLimits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._limits = limits
        self._head = 0
        self._request = 0
        self._in_head = True

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if self._head > self._limits.head_bytes:
                self.transport.abort()
                return
            self._head += len(data)
        self._request += len(data)
        if self._request > self._limits.request_bytes:
            self.transport.abort()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined_requests:
            self.transport.abort()
            raise _TooManyPipelined
        self._in_head, self._head, self._request = True, 0, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        # Whoever was hung up on is told nothing any more.
        if not self.transport.is_closing():
            super().send_400_response(msg)


def hush() -> None:
    """Keep what agents do to HTTP out of the log: it is theirs to say, as often as they like."""
    for name in ("uvicorn.error", "mcp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
