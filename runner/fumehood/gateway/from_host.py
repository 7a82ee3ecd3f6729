"""Sends model requests from the host, for judges. They are not charged to any agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import httpx2

from fumehood.core.trace import ModelExchange
from fumehood.gateway.costs import BYTES_PER_TOKEN
from fumehood.gateway.provider_client import (
    NoWaits,
    ProviderClient,
    ProviderFailed,
    ProviderRequest,
    RequestFailed,
)
from fumehood.gateway.requests import request_key
from fumehood.gateway.settings import GatewaySettings, Provider

PATH = "/v1/chat/completions"
SEAT = "judge"
REPLY_BYTES_MAX = 4 << 20
FAILED_STATUS = 0
"""Recorded status if no provider answered."""
_HEADERS = {"content-type": "application/json", "accept": "application/json"}


def ask_models(
    settings: GatewaySettings, provider: Provider, bodies: Sequence[bytes]
) -> list[ModelExchange]:
    """Send all requests in parallel and return their exchanges in order, failures included."""
    return asyncio.run(_send_all(settings, provider, bodies))


def failed_exchange(body: bytes) -> ModelExchange:
    """Return the exchange of a request without a response."""
    return _exchange(body, FAILED_STATUS, b"")


async def _send_all(
    settings: GatewaySettings, provider: Provider, bodies: Sequence[bytes]
) -> list[ModelExchange]:
    client = ProviderClient(settings)
    try:
        return await asyncio.gather(*(_send(client, provider, body) for body in bodies))
    finally:
        await client.close()


async def _send(client: ProviderClient, provider: Provider, body: bytes) -> ModelExchange:
    request = ProviderRequest(
        provider=provider,
        path=PATH,
        model=str(json.loads(body).get("model", "")),
        body=body,
        headers=_HEADERS,
        episode=SEAT,
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
    except (ProviderFailed, RequestFailed, httpx2.TransportError):
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
