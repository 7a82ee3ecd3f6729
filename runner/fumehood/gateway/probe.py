"""Sends single requests to providers before a run, to test whether they are accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import httpx2

from fumehood.gateway.dialects import key_header
from fumehood.gateway.settings import Provider

ATTEMPTS = 3
"""Attempts while a provider does not answer, or answers 500 or more."""
PAUSE_S = 0.5
CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
RESPONSE_BYTES_MAX = 1 << 20
"""Part of a response that is read."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One request."""

    provider: Provider
    path: str
    body: str


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """The response to one request."""

    status: int
    """0 if no response arrived."""
    body: bytes
    failure: str = ""
    """Why no response arrived, such as ``ConnectError``."""


def send_probes(requests: Iterable[ProbeRequest]) -> list[ProbeResponse]:
    """Send all requests and return their responses in order."""
    return asyncio.run(_send_all(list(requests)))


async def _send_all(requests: list[ProbeRequest]) -> list[ProbeResponse]:
    timeout = httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    async with httpx2.AsyncClient(timeout=timeout, trust_env=False) as client:
        return await asyncio.gather(*(_send(client, request) for request in requests))


async def _send(client: httpx2.AsyncClient, request: ProbeRequest) -> ProbeResponse:
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    if request.provider.key:
        name, value = key_header(request.path, request.provider.key)
        headers[name] = value
    url = request.provider.url(request.path)
    result = ProbeResponse(0, b"")
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(PAUSE_S)
        try:
            async with (
                asyncio.timeout(ANSWER_TIMEOUT_S),
                client.stream("POST", url, content=request.body, headers=headers) as response,
            ):
                result = ProbeResponse(response.status_code, await _body(response))
        except (httpx2.TransportError, TimeoutError) as error:
            result = ProbeResponse(0, b"", type(error).__name__)
            continue
        if result.status < 500:
            break
    return result


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > RESPONSE_BYTES_MAX:
            break
    return bytes(body[:RESPONSE_BYTES_MAX])
