"""An HTTP/1.1 server on a Unix socket.

Until the first connection it consists of a bound socket only: no application, no thread, no task.
uvicorn's protocol class parses the requests. This module adds limits for one agent, because uvicorn
expects a reverse proxy to enforce them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

T = TypeVar("T")

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
"""Creates the application of one socket. The context is left when the socket is closed."""

STOP_TIMEOUT_S = 5.0
IDLE_S = 24 * 60 * 60
"""Idle time until a connection is closed. An agent may pause for long between two calls."""
RETRY_S = 0.1
"""Pause after ``accept`` failed because no file descriptor was free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits for one agent on its HTTP socket."""

    connections: int = 64
    """Open connections; the server closes any further one."""
    head_bytes: int = 64 * 1024
    """Size of the request line and the headers of one request. The server closes the connection
    beyond it."""
    body_bytes: int = 4 * 1024 * 1024
    """Size of the body of one tool request."""
    request_bytes: int = 64 * 1024 * 1024
    """Size of one whole request, including the part after a refusal. The server closes the
    connection beyond it."""
    pipelined_requests: int = 8
    """Requests of one connection that wait for the current one. The server closes the connection
    beyond it."""


class LoopThread:
    """One event loop in its own thread, for all HTTP sockets of a process.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def soon(self, work: Callable[[], object]) -> None:
        """Schedule a call of ``work`` in the loop and return at once."""
        self.loop.call_soon_threadsafe(work)

    def wait_for(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run ``work`` in the loop and return its result.

        Raises:
            TimeoutError: it takes longer than ``timeout_s`` seconds.
        """
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_s)

    def stop(self) -> None:
        """Cancel all tasks and end the thread."""
        self.soon(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


class HttpListener:
    """Serves one application on one Unix socket."""

    def __init__(
        self,
        path: Path,
        make_app: AppMaker,
        loop: LoopThread,
        limits: HttpLimits,
        count_refused: Callable[[int], object] = id,
    ) -> None:
        """Start listening.

        Args:
            path: where to listen, at most 107 bytes.
            make_app: called at the first connection.
            loop: runs the server.
            limits: limits for the agent.
            count_refused: called with the size of each request that the protocol refuses, bytes.

        Raises:
            OSError: the socket cannot be bound.
        """
        self._make_app = make_app
        self._thread = loop
        self._loop = loop.loop
        self._limits = limits
        self._count_refused = count_refused
        self._state = ServerState()
        self._arriving = 0
        """Accepted connections that the protocol does not manage yet."""
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

    def finish_replies(self, timeout_s: float) -> None:
        """Wait until the requests that have arrived are answered, for at most ``timeout_s``."""
        with suppress(TimeoutError):
            self._thread.wait_for(self._finish_replies(), timeout_s)

    def stop(self) -> None:
        """Close all connections and wait until they are closed."""
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
            # The socket stays readable, so without a pause the loop would do nothing else.
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
        self._track(self._loop.create_task(self._serve_connection(connection)))

    async def _serve_connection(self, connection: socket.socket) -> None:
        assert self._app is not None
        try:
            await self._attach(connection, await asyncio.shield(self._app))
        finally:
            self._arriving -= 1

    async def _attach(self, connection: socket.socket, app: App) -> None:
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
            lambda: _Protocol(config, self._state, self._limits, self._loop, self._count_refused),
            connection,
        )

    def _track(self, task: asyncio.Task[None]) -> None:
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

    async def _finish_replies(self) -> None:
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

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
    """Stops the parser, which may hold many buffered requests."""


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits for headers and for whole requests, which llhttp lacks."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        limits: HttpLimits,
        loop: asyncio.AbstractEventLoop,
        count_refused: Callable[[int], object],
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._limits = limits
        self._count_refused = count_refused
        self._head = 0
        self._request = 0
        self._chunk = 0
        """Size of the last bytes that arrived. ``_request`` lacks them if a request begins in
        them."""
        self._in_head = True

    def data_received(self, data: bytes) -> None:
        self._chunk = len(data)
        if self._in_head:
            if self._head > self._limits.head_bytes:
                self._refuse()
                return
            self._head += len(data)
        self._request += len(data)
        if self._request > self._limits.request_bytes:
            self._refuse()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined_requests:
            self._refuse()
            raise _TooManyPipelined
        self._in_head, self._head, self._request = True, 0, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._in_head and self._chunk:
            # The head was cut off. The application counts requests whose body was cut off.
            self._count_refused(self._request + self._chunk)
        super().connection_lost(exc)

    def _refuse(self) -> None:
        self._count_refused(self._request + self._chunk)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._count_refused(self._request + self._chunk)
        # A closed connection gets no response.
        if not self.transport.is_closing():
            super().send_400_response(msg)


def silence_loggers() -> None:
    """Disable the loggers of the HTTP libraries: an agent could fill the log through them."""
    for name in ("uvicorn.error", "mcp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
