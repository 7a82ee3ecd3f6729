"""The brokers of a service: they send the model requests of episode processes to the providers.

Only this part of the service has the keys and connections to providers.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future

from fumehood.gateway.broker import Broker
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

    def stop(self) -> None:
        """Stop all brokers."""
        self._loop.stop()
