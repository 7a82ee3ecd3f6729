"""A broker sends only requests of the gateway, also if the process of an episode forges others."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import pytest

from fumehood.gateway.broker import Broker
from fumehood.gateway.provider_client import ProviderClient
from fumehood.testing.scripted_models import ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.models import CHAT, chat, gateway_settings

SEND, BEGAN, BROKE = 1, 3, 6
PLAIN: dict[str, Any] = {
    "provider": "scripted",
    "path": CHAT,
    "model": "m1",
    "headers": {"content-type": "application/json"},
    "tokens": 10,
}


def first_reply(models: ScriptedModels, head: dict[str, Any]) -> int:
    """Return the kind of the first message that answers a request."""
    encoded, body = json.dumps(head).encode(), json.dumps(chat()).encode()
    content = struct.pack(">I", len(encoded)) + encoded + body

    async def run() -> int:
        settings = gateway_settings(models)
        client = ProviderClient(settings)
        here, there = socket.socketpair()
        serving = asyncio.create_task(Broker(settings, client).serve(there))
        reader, writer = await asyncio.open_connection(sock=here)
        writer.write(struct.pack(">IBI", len(content), SEND, 1) + content)
        kind = 9
        while kind == 9:  # A wait.
            size, kind, _ = struct.unpack(">IBI", await reader.readexactly(9))
            await reader.readexactly(size)
        writer.close()
        await serving
        await client.close()
        return kind

    return asyncio.run(run())


def test_a_request_of_the_gateway_is_sent() -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, PLAIN) == BEGAN
        assert len(models.asked) == 1


@pytest.mark.parametrize(
    "forged",
    [
        {"path": "/v1/files"},
        {"path": "@attacker.example/v1/chat/completions"},
        {"headers": {"host": "attacker.example"}},
        {"headers": {"authorization": "Bearer other"}},
        {"provider": "another"},
    ],
)
def test_a_forged_request_is_not_sent(forged: dict[str, Any]) -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, {**PLAIN, **forged}) == BROKE
        assert not models.asked
