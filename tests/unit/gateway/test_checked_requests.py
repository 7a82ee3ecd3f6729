"""What the gateway knows of a request before it sends it."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

from fumehood.gateway.dialects import RESPONSES_PATH
from fumehood.gateway.requests import (
    SMALL_BODY_BYTES,
    ModelRefusal,
    ModelRequest,
    Refused,
    RequestReader,
    check_request,
)
from fumehood.gateway.settings import GatewaySettings, ModelsMode, Provider
from fumehood.gateway.strict_json import VALUES_MAX
from tests.parts.models import CHAT, MESSAGES, chat

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def settings(**change: Any) -> GatewaySettings:
    provider = Provider(name="p", address="http://localhost", models=("m*",))
    plain: dict[str, Any] = {"mode": ModelsMode.LIVE, "providers": (provider,)}
    return GatewaySettings(**{**plain, **change})


def checked(body: dict[str, Any], path: str = CHAT, *grants: str) -> ModelRequest:
    granting = settings(grants=frozenset(grants))
    return check_request(granting, path, json.dumps(body).encode(), {})


def read(*parts: bytes, **change: Any) -> ModelRequest | ModelRefusal:
    """Return what becomes of a body that arrives in parts."""
    messages: list[Message] = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, 1)
    ]

    async def receive() -> Message:
        return messages.pop(0)

    async def run() -> ModelRequest | ModelRefusal:
        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [], "query_string": b""}
        reader = RequestReader(settings(**change), threads)
        with reader.hold_memory() as memory:
            try:
                return await reader.read(Request(scope, receive), memory)
            except Refused as refused:
                return refused.kind

    with ThreadPoolExecutor(1) as threads:
        return asyncio.run(run())


def test_only_text_bounds_the_tokens_of_a_request() -> None:
    picture = {"model": "m", "messages": [{"role": "user", "content": [PICTURE]}]}
    priority = chat(service_tier="priority")
    assert checked(chat()).is_bounded
    assert not checked(picture).is_bounded
    assert not checked(priority, CHAT, "service_tier").is_bounded


@pytest.mark.parametrize("field", ["tools", "functions"])
def test_tools_are_noticed_in_both_forms(field: str) -> None:
    function: dict[str, Any] = {"name": "f", "parameters": {}}
    listed = {"type": "function", "function": function} if field == "tools" else function
    assert checked({**chat(), field: [listed]}).has_tools
    assert not checked({**chat(), field: []}).has_tools


def test_a_provider_stores_a_response_only_if_the_run_grants_it() -> None:
    body = {"model": "m", "input": "hello"}
    assert json.loads(checked(body, RESPONSES_PATH).body)["store"] is False
    assert "store" not in json.loads(checked(body, RESPONSES_PATH, "stored_responses").body)
    assert "store" not in json.loads(checked(chat()).body)


@pytest.mark.parametrize("system", ["be brief", [{"type": "text", "text": "be brief"}]])
def test_the_instructions_of_a_message_may_be_text_or_blocks(system: object) -> None:
    assert checked(chat(system=system), MESSAGES).model == "m1"


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES_PATH])
def test_a_request_needs_the_name_of_a_known_model(path: str) -> None:
    with pytest.raises(Refused) as refused:
        checked({"model": "other"}, path)
    assert refused.value.kind is ModelRefusal.UNKNOWN_MODEL


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(Refused, match="/v1/chat/completions") as refused:
        checked(chat(), "/v1/files")
    assert refused.value.kind is ModelRefusal.MALFORMED


def test_a_body_is_read_from_its_parts() -> None:
    body = json.dumps(chat()).encode()
    whole = read(body[:10], body[10:])
    assert isinstance(whole, ModelRequest)
    assert whole.size_bytes == len(body)
    assert json.loads(whole.body) == chat()


def test_a_large_body_is_read_like_a_small_one() -> None:
    request = read(json.dumps(chat(text="x" * SMALL_BODY_BYTES)).encode())
    assert isinstance(request, ModelRequest)
    assert request.model == "m1"


@pytest.mark.parametrize(
    ("names", "refusal"),
    [
        ({"model": "other"}, ModelRefusal.UNKNOWN_MODEL),
        ({}, ModelRefusal.MALFORMED),
    ],
    ids=str,
)
def test_a_large_body_without_a_known_model_is_refused(
    names: dict[str, Any], refusal: ModelRefusal
) -> None:
    long = {**names, "messages": [{"role": "user", "content": "x" * SMALL_BODY_BYTES}]}
    assert read(json.dumps(long).encode()) is refusal


@pytest.mark.parametrize("most", [0, -1])
def test_a_body_above_the_limit_is_refused(most: int) -> None:
    body = json.dumps(chat()).encode()
    result = read(body, body_bytes_max=len(body) + most)
    assert (result is ModelRefusal.TOO_LARGE) == (most < 0)


def test_a_body_with_too_many_values_is_refused() -> None:
    values = b'{"model": "m1", "messages": [' + b"0," * VALUES_MAX + b"0]}"
    assert read(values) is ModelRefusal.TOO_LARGE


def test_a_request_that_is_longer_as_written_reserves_its_written_size() -> None:
    sent = b'{"model":"m","max_tokens":5,"messages":[],"metadata":[1e15,1e15]}'
    request = check_request(settings(), CHAT, sent, {})
    assert len(request.body) > len(sent)
    assert request.tokens_max == (len(request.body), 5)
