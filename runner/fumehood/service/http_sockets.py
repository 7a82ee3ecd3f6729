"""The HTTP sockets of an episode process: one event loop and a few threads for all of them.

Only a service with HTTP sockets imports this module, because its libraries take longer to import
than an episode takes to play.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Amounts, BudgetKind, Exhausted, Reservation
from fumehood.core.trace import (
    ModelCalled,
    ModelExchange,
    ModelProblemNoted,
    ModelRefused,
    ProviderChecked,
)
from fumehood.gateway.broker import RemoteProviderClient
from fumehood.gateway.gateway import Gateway
from fumehood.gateway.settings import GatewaySettings
from fumehood.gateway.waiting import Activity
from fumehood.service.seat_endpoint import SeatEndpoint
from fumehood.service.trace_stream import TraceStream
from fumehood.supervised.late_imports import import_late
from fumehood.wire.http.listener import (
    STOP_TIMEOUT_S,
    App,
    HttpLimits,
    HttpListener,
    LoopThread,
    silence_loggers,
)
from fumehood.wire.http.seat_app import seat_app
from fumehood.wire.ports import MODELS_FIELD, SpecRejected, TimeGranted

SOCKET_NAME = "http.sock"
HELPER_FOLDER = "bin"
HELPER_NAME = "fumehood"
THREADS = 16
"""Threads that execute calls. A seat occupies at most one of them. A seat that takes turns has a
separate thread, so that seats that wait cannot block the seat that has the turn."""


class HttpSockets:
    """Opens the HTTP sockets of seats. Safe to use from several threads after ``start``."""

    def __init__(
        self,
        helper: Path | None,
        models: GatewaySettings | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        """Import the libraries, without starting a thread.

        Args:
            helper: the program that boxes see as ``bin/fumehood``; None for no program.
            models: settings of the gateway without the keys; None for no models.
            limits: limits for an agent; None for the defaults.
        """
        self._models = models
        self._gateway: Gateway | None = None
        self._limits = limits or HttpLimits()
        self._helper_bytes = helper.read_bytes() if helper else None
        import_late("anyio._backends._asyncio")
        silence_loggers()

    def start(self, broker: socket.socket | None = None) -> None:
        """Start the loop and the threads; ``broker`` sends model requests, None for no models."""
        self._loop = LoopThread()
        if self._models is not None and broker is not None:
            self._gateway = Gateway(self._models, RemoteProviderClient(broker))
        self._threads = ThreadPoolExecutor(THREADS, "http-call")

    def open(
        self,
        endpoint: SeatEndpoint,
        folder: Path,
        trace: TraceStream,
        exchanges: Sequence[ModelExchange],
    ) -> HttpListener:
        """Listen in the folder of a seat, and copy the helper program into it.

        Args:
            endpoint: the seat's endpoint.
            folder: the seat's folder.
            trace: the trace of its episode.
            exchanges: recorded model requests with their responses, if models are replayed.

        Raises:
            OSError: the socket cannot be created.
        """
        path = folder / SOCKET_NAME
        listener = HttpListener(
            path,
            lambda: self._app(endpoint, folder, trace, exchanges),
            self._loop,
            self._limits,
            endpoint.count_refused,
        )
        path.chmod(0o666)
        if self._helper_bytes is not None:
            (folder / HELPER_FOLDER).mkdir(mode=0o755)
            (folder / HELPER_FOLDER).chmod(0o755)
            # A copy: locks on a shared file, and its link count, would connect boxes.
            helper = folder / HELPER_FOLDER / HELPER_NAME
            helper.write_bytes(self._helper_bytes)
            helper.chmod(0o555)
        return listener

    @asynccontextmanager
    async def _app(
        self,
        endpoint: SeatEndpoint,
        folder: Path,
        trace: TraceStream,
        exchanges: Sequence[ModelExchange],
    ) -> AsyncIterator[App]:
        # The application views the task, and must not block the loop.
        await asyncio.get_running_loop().run_in_executor(self._threads, endpoint.await_begin)
        models = None
        if self._gateway is not None:
            # The seats of an episode have neighbouring folders.
            budget = ModelBudget(endpoint, trace, episode=str(folder.parent))
            models = self._gateway.endpoint(budget, exchanges, self._threads)
        threads = ThreadPoolExecutor(1, "http-seat") if endpoint.takes_turns else self._threads
        async with seat_app(endpoint, threads, self._limits, models) as app:
            yield app

    def stop(self) -> None:
        """Stop the loop and the threads. Every socket must have been stopped before."""
        if self._gateway is not None:
            self._loop.wait_for(self._gateway.close(), STOP_TIMEOUT_S)
        self._loop.stop()
        self._threads.shutdown(wait=False)


class ModelBudget:
    """Implements the gateway's ``BudgetPort`` for one seat."""

    def __init__(self, endpoint: SeatEndpoint, trace: TraceStream, *, episode: str) -> None:
        self.name = endpoint.name
        self.episode = episode
        self._endpoint = endpoint
        self._trace = trace

    def has_limit(self, kind: BudgetKind) -> bool:
        """Return whether the budget limits this kind."""
        return self._endpoint.has_limit(kind)

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted | None:
        """Reserve the cost of a model request; None if the work has ended."""
        return self._endpoint.reserve(amounts)

    @property
    def is_monitored(self) -> bool:
        """Whether the episode has monitors."""
        return self._endpoint.is_monitored

    def review(
        self, model: str, request: JsonObject, answered: tuple[int, JsonObject] | None = None
    ) -> tuple[int, JsonObject] | None:
        """Ask the monitors about a model request; None if the work has ended."""
        return self._endpoint.review(model, request, answered)

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Charge and record the actual cost of a model request."""
        self._endpoint.settle(reservation, event, actual)

    def note(self, event: ModelRefused | ModelProblemNoted | ProviderChecked) -> None:
        """Record a problem with a model request."""
        self._endpoint.note(event)

    def activity(self) -> Activity:
        """Return the tool calls of the seat."""
        return Activity(*self._endpoint.message_counts())

    def grant(self, granted_ms: int) -> None:
        """Extend the wall time, here and in the orchestrator, which stops the box."""
        self._endpoint.grant(granted_ms)
        self._trace.post(TimeGranted(self.name, granted_ms))

    def keep(self, exchange: ModelExchange) -> None:
        """Send an exchange to the orchestrator, which writes the cassette."""
        self._trace.post(exchange)

    def end_episode(self, reason: str) -> None:
        """End the episode because no model provider can be reached."""
        self._trace.close(SpecRejected(MODELS_FIELD, reason))
