"""The second sockets of a service: one event loop and a few threads for all of them.

Only a service whose agents may want HTTP imports this room: the libraries take longer to import than an
episode takes to play.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path

from fumehood.core.trace import ModelExchange
from fumehood.gateway.gateway import Gateway
from fumehood.gateway.settings import GatewaySettings
from fumehood.service.model_purse import ModelPurse
from fumehood.service.seat_endpoint import SeatEndpoint
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.http.listener import (
    STOP_TIMEOUT_S,
    App,
    HttpLimits,
    HttpListener,
    LoopThread,
    silence_loggers,
)
from fumehood.wire.http.seat_app import seat_app

SOCKET_NAME = "http.sock"
HELPER_FOLDER = "bin"
HELPER_NAME = "fumehood"
THREADS = 16
"""In which calls are carried out. A seat never holds more than one, and none for longer than a tool works:
one that may have to wait for the floor has a thread of its own, or who waits could keep out who speaks."""

_FOUND_LATE = ("anyio._backends._asyncio", "concurrent.futures.thread", "encodings.idna")
"""What the libraries import at their first use, when this process may not be allowed to read it any more."""


class HttpDoors:
    """Opens the HTTP sockets of seats; safe to use from several threads once started."""

    def __init__(
        self,
        helper: Path | None,
        models: GatewaySettings | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        """Import what is needed; nothing runs yet.

        Args:
            helper: the program that boxes find as ``bin/fumehood``; None for none.
            models: who answers for models; None for nobody.
            limits: what an agent may do to its socket.
        """
        self._gateway = Gateway(models) if models else None
        self._limits = limits or HttpLimits()
        self._helper_bytes = helper.read_bytes() if helper else None
        self._helper: Path | None = None
        for name in _FOUND_LATE:
            import_module(name)
        silence_loggers()

    def start(self, directory: Path) -> None:
        """Be ready for seats.

        Args:
            directory: of the service, on the file system where its seats' folders are made.
        """
        self._loop = LoopThread()
        self._threads = ThreadPoolExecutor(THREADS, "http-call")
        if self._helper_bytes is not None:
            # A file of this process's own user, because nobody may link to another's.
            self._helper = directory / HELPER_NAME
            self._helper.write_bytes(self._helper_bytes)
            self._helper.chmod(0o555)

    def open(
        self,
        desk: SeatEndpoint,
        room: Path,
        outbox: TraceStream,
        exchanges: Sequence[ModelExchange],
    ) -> HttpListener:
        """Listen in a seat's folder, and put the helper there.

        Args:
            desk: of the seat.
            room: its folder.
            outbox: of its episode.
            exchanges: what models answered before, where they are replayed.

        Raises:
            OSError: the socket cannot be made.
        """
        path = room / SOCKET_NAME
        listener = HttpListener(
            path, lambda: self._app(desk, outbox, exchanges), self._loop, self._limits
        )
        path.chmod(0o666)
        if self._helper is not None:
            (room / HELPER_FOLDER).mkdir(mode=0o755)
            (room / HELPER_FOLDER).chmod(0o755)
            os.link(self._helper, room / HELPER_FOLDER / HELPER_NAME)
        return listener

    def _app(
        self, desk: SeatEndpoint, outbox: TraceStream, exchanges: Sequence[ModelExchange]
    ) -> AbstractAsyncContextManager[App]:
        models = None
        if self._gateway is not None:
            models = self._gateway.door(ModelPurse(desk, outbox), exchanges, self._threads)
        threads = ThreadPoolExecutor(1, "http-seat") if desk.waits_for_floor else self._threads
        return seat_app(desk, threads, self._limits, models)

    def stop(self) -> None:
        """End everything; every socket must have been stopped before."""
        if self._gateway is not None:
            self._loop.wait_for(self._gateway.close(), STOP_TIMEOUT_S)
        self._loop.stop()
        self._threads.shutdown(wait=False)
