"""Asking a model from the host, for opinions: never from a box, and apart from what agents may spend."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import httpx2

from fumehood.core.trace import ModelExchange
from fumehood.gateway.cassette import request_key
from fumehood.gateway.dialects import DIALECTS
from fumehood.gateway.provider_client import ProviderClient, ProviderFailed
from fumehood.gateway.settings import GatewaySettings, Provider

PATH = "/v1/chat/completions"
SEAT = "judge"
REPLY_BYTES_MAX = 4 << 20
FAILED_STATUS = 0
"""Written down where nobody answered."""
_HEADERS = {"content-type": "application/json", "accept": "application/json"}


def ask_models(
    settings: GatewaySettings, provider: Provider, bodies: Sequence[bytes]
) -> list[ModelExchange]:
    """Ask all at once and return what was answered, in their order; a failure is an exchange as well."""
    return asyncio.run(_ask_all(settings, provider, bodies))


def unanswered(body: bytes) -> ModelExchange:
    """Return the exchange of a request to which nobody said anything."""
    return _exchange(body, FAILED_STATUS, b"")


async def _ask_all(
    settings: GatewaySettings, provider: Provider, bodies: Sequence[bytes]
) -> list[ModelExchange]:
    client = ProviderClient(settings)
    try:
        return await asyncio.gather(*(_ask(client, provider, body) for body in bodies))
    finally:
        await client.close()


async def _ask(client: ProviderClient, provider: Provider, body: bytes) -> ModelExchange:
    key_header = DIALECTS[PATH].key_header(provider.key)
    try:
        async with client.ask(provider, PATH, body, _HEADERS, key_header, named=False) as asked:
            reply = bytearray()
            async for part in asked.response.aiter_raw():
                reply += part
                if len(reply) > REPLY_BYTES_MAX:
                    return unanswered(body)
            return _exchange(body, asked.response.status_code, bytes(reply))
    except (ProviderFailed, httpx2.TransportError):
        return unanswered(body)


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
