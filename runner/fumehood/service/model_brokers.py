"""The brokers of a service: they send the model requests of episode processes to the providers.

Only this part of the service has the keys and connections to providers.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future

from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject
from fumehood.gateway.broker import Broker
from fumehood.gateway.from_host import response_of, send_from_host
from fumehood.gateway.provider_client import ProviderClient
from fumehood.gateway.settings import GatewaySettings
from fumehood.supervised.late_imports import import_late
from fumehood.wire.http.listener import LoopThread, silence_loggers


class ModelBrokers:
    """Opens one broker per episode process. Safe to use from several threads after ``start``."""

    def __init__(self, models: GatewaySettings) -> None:
        """Import the libraries and load the trusted certificates, without starting a thread.

        Args:
            models: settings of the gateway, with the keys.
        """
        self._models = models
        # Loads the trusted certificates while this process can still read them.
        self._sender = ProviderClient(models)
        self._serving = set[Future[None]]()
        import_late("anyio._backends._asyncio")
        silence_loggers()

    def start(self) -> None:
        """Start the event loop of all brokers."""
        self._loop = LoopThread()

    def serve(self, connection: socket.socket) -> Broker:
        """Send the model requests of another process; return what this one knows of them."""
        broker = Broker(self._models, self._sender)
        serving = asyncio.run_coroutine_threadsafe(broker.serve(connection), self._loop.loop)
        # The loop has only weak references.
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        return broker

    def ask(self, model: str, body: bytes, timeout_s: float) -> JsonObject:
        """Return the response to a chat completion of a monitor.

        Args:
            model: its name.
            body: of the request.
            timeout_s: for the whole response.

        Raises:
            TimeoutError: there is no response in time.
            InfraError: no provider has the model, or it does not answer this request.
        """
        provider = self._models.provider_of(model)
        if provider is None:
            raise InfraError(f"no provider has the model {model}")
        asking = asyncio.run_coroutine_threadsafe(
            send_from_host(self._sender, provider, body), self._loop.loop
        )
        try:
            exchange = asking.result(max(timeout_s, 0.0))
        except TimeoutError:
            asking.cancel()
            raise
        return response_of(exchange, model)

    def stop(self) -> None:
        """Stop all brokers."""
        self._loop.stop()
