"""Sends model requests from the host, for judges and monitors. They are charged to no agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import cache
from threading import Thread

import httpx2

from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject, as_object
from fumehood.core.trace import ModelExchange
from fumehood.gateway.costs import BYTES_PER_TOKEN
from fumehood.gateway.provider_client import (
    NoWaits,
    ProviderClient,
    ProviderFailed,
    ProviderRequest,
    RequestFailed,
    ResponseTooLarge,
)
from fumehood.gateway.provider_queue import ProviderQueue
from fumehood.gateway.requests import request_key
from fumehood.gateway.settings import GatewaySettings, Provider

PATH = "/v1/chat/completions"
SEAT = "judge"
REPLY_BYTES_MAX = 4 << 20
OK_STATUS = 200
FAILED_STATUS = 0
"""Recorded status if no provider answered."""
_HEADERS = {"content-type": "application/json", "accept": "application/json"}


class HostModels:
    """Sends the requests of a judge within the limits of its provider. Safe for several threads."""

    def __init__(self, settings: GatewaySettings, provider: Provider) -> None:
        """Open no connection yet.

        Args:
            settings: of the gateway.
            provider: receives all requests.
        """
        self._settings = settings
        self._provider = provider
        self._queues: dict[Provider, ProviderQueue] = {}

    def ask(self, bodies: Sequence[bytes]) -> list[ModelExchange]:
        """Send all requests in parallel and return their exchanges in order, failures included."""
        return asyncio.run_coroutine_threadsafe(self._send_all(bodies), _loop()).result()

    async def _send_all(self, bodies: Sequence[bytes]) -> list[ModelExchange]:
        client = ProviderClient(self._settings, self._queues)
        try:
            return await asyncio.gather(
                *(send_from_host(client, self._provider, body) for body in bodies)
            )
        finally:
            await client.close()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that all judges of this process share."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="judge", daemon=True).start()
    return loop


def response_of(exchange: ModelExchange, model: str) -> JsonObject:
    """Return the body of a successful response.

    Raises:
        InfraError: the model did not answer, or its response is not JSON.
    """
    if exchange.status != OK_STATUS:
        raise InfraError(f"the model {model} answers with status {exchange.status}")
    try:
        return as_object(json.loads(exchange.response))
    except (ValueError, RecursionError):
        raise InfraError(f"the response of the model {model} is not JSON") from None


def failed_exchange(body: bytes) -> ModelExchange:
    """Return the exchange of a request without a response."""
    return _exchange(body, FAILED_STATUS, b"")


async def send_from_host(client: ProviderClient, provider: Provider, body: bytes) -> ModelExchange:
    """Return the exchange of one chat completion, failures included."""
    request = ProviderRequest(
        provider=provider,
        path=PATH,
        model=str(json.loads(body).get("model", "")),
        body=body,
        headers=_HEADERS,
        episode=SEAT,
        seat=SEAT,
        tokens=len(body) // BYTES_PER_TOKEN,
    )
    try:
        async with client.send(request, NoWaits()) as started:
            reply = bytearray()
            async for part in started.parts():
                reply += part
                if len(reply) > REPLY_BYTES_MAX:
                    return failed_exchange(body)
            return _exchange(body, started.status, bytes(reply))
    except (ProviderFailed, RequestFailed, ResponseTooLarge, httpx2.TransportError):
        return failed_exchange(body)


def _exchange(body: bytes, status: int, reply: bytes) -> ModelExchange:
    return ModelExchange(
        seat=SEAT,
        key=request_key(PATH, json.loads(body)),
        occurrence=1,
        request=body,
        status=status,
        content_type="application/json",
        response=reply,
    )
