"""A broker sends only requests of the gateway, also if the process of an episode forges others."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from fumehood.core.ledger import Budget
from fumehood.gateway.broker import (
    HEAD_BYTES_MAX,
    OPEN_BODIES_MAX,
    OPEN_REQUESTS_MAX,
    REFUSED_MAX,
    Broker,
)
from fumehood.gateway.provider_client import ProviderClient
from fumehood.gateway.provider_queue import ProviderQueue
from fumehood.gateway.requests import SMALL_BODY_BYTES
from fumehood.gateway.strict_json import VALUES_MAX
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.listening import PATIENCE_S
from tests.parts.models import CHAT, chat, gateway_settings

SEND, CANCEL, BEGAN, PART, ENDED, BROKE, FAILED = range(1, 8)
PLAIN: dict[str, Any] = {
    "seat": "agent",
    "provider": "scripted",
    "path": CHAT,
    "headers": {"content-type": "application/json"},
}


def replies(
    models: ScriptedModels,
    head: dict[str, Any],
    body: bytes,
    budget: Budget | None,
    requests: int = 1,
    *,
    cancel_at: int | None = None,
    passed_bytes: list[int] | None = None,
    **change: Any,
) -> list[int]:
    """Return the kind of the last message that answers each of equal requests, sent in turn.

    Args:
        models: the provider.
        head: of the requests.
        body: of the requests.
        budget: of the episode; None if it has not begun.
        requests: their number.
        cancel_at: cancel a request after an answer of this kind; None for none.
        passed_bytes: gets the size of what the broker passed on.
        change: to the settings of the gateway.
    """
    encoded = json.dumps(head).encode()
    content = struct.pack(">I", len(encoded)) + encoded + body

    async def run() -> list[int]:
        settings = gateway_settings(models, attempts=1, **change)
        client = ProviderClient(settings)
        here, there = socket.socketpair()
        broker = Broker(settings, client)
        if budget is not None:
            broker.limit({"agent": budget})
        serving = asyncio.create_task(broker.serve(there))
        reader, writer = await asyncio.open_connection(sock=here)
        kinds = []
        for number in range(requests):
            writer.write(struct.pack(">IBI", len(content), SEND, number) + content)
            kind = 0
            while kind not in (ENDED, BROKE, FAILED, cancel_at):
                size, kind, _ = struct.unpack(">IBI", await reader.readexactly(9))
                await reader.readexactly(size)
            if kind == cancel_at:
                writer.write(struct.pack(">IBI", 0, CANCEL, number))
            kinds.append(kind)
        writer.close()
        await serving
        await client.close()
        if passed_bytes is not None:
            passed_bytes.append(broker.passed_bytes)
        return kinds

    return asyncio.run(run())


def body(**more: Any) -> bytes:
    """Return the body of a request for a chat completion."""
    return json.dumps(chat(**more)).encode()


def first_reply(models: ScriptedModels, head: dict[str, Any], request: bytes = body()) -> int:
    """Return the kind of the last message that answers a request without a budget."""
    return replies(models, head, request, Budget())[0]


@pytest.mark.parametrize("head", [{**PLAIN, "seat": "another"}, {**PLAIN, "provider": "another"}])
def test_only_requests_that_are_sent_count_as_passed(head: dict[str, Any]) -> None:
    passed_bytes: list[int] = []
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        replies(models, head, body(), Budget(), 3, passed_bytes=passed_bytes)
        assert passed_bytes == [0]
        replies(models, PLAIN, body(), Budget(), passed_bytes=passed_bytes)
        assert passed_bytes[1] >= len(body())


def test_a_response_counts_as_passed_also_if_the_process_does_not_wait_for_it() -> None:
    passed_bytes: list[int] = []
    with ScriptedModels(lambda _: ScriptedReply(text="x" * 10_000)) as models:
        replies(models, PLAIN, body(), Budget(), cancel_at=PART, passed_bytes=passed_bytes)
    assert passed_bytes[0] > len(body())


def test_a_request_of_the_gateway_is_sent() -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, PLAIN) == ENDED
        assert len(models.asked) == 1


@pytest.mark.parametrize(
    "forged",
    [
        body(tools=[{"type": "web_search"}]),
        body(previous_response_id="resp_1"),
        body(model="another"),
        b'{"model": "m1", "model": "m1"}',
        b"not JSON",
        b'{"model": "m1", "messages": [' + b"[]," * VALUES_MAX + b"0]}",
    ],
)
def test_a_body_that_the_gateway_would_refuse_is_not_sent(forged: bytes) -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, PLAIN, forged) == BROKE
        assert not models.asked


@pytest.mark.parametrize(
    ("budget", "sent"),
    [
        (Budget(), 4),
        (Budget(model_calls=2), 2),
        (Budget(model_calls=0), 0),
        (Budget(model_tokens=25), 3),
        (Budget(model_microusd=1), 0),
        (None, 0),
    ],
    ids=str,
)
def test_at_most_one_request_exceeds_the_budget_of_a_seat(budget: Budget | None, sent: int) -> None:
    reply = ScriptedReply(text="ok", usage=(8, 2))
    with ScriptedModels(lambda _: reply) as models:
        kinds = replies(models, PLAIN, body(), budget, requests=4)
        assert kinds == [ENDED] * sent + [BROKE] * (4 - sent)
        assert len(models.asked) == sent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "kind"),
    [(ScriptedReply(status=400), ENDED), (ScriptedReply(hangs_up=True), FAILED)],
    ids=["refused by the provider", "without an answer"],
)
def test_a_request_without_a_response_costs_a_call_and_no_tokens(
    reply: ScriptedReply, kind: int
) -> None:
    with ScriptedModels(lambda _: reply) as models:
        budget = Budget(model_tokens=1, model_calls=2)
        assert replies(models, PLAIN, body(), budget, requests=3) == [kind, kind, BROKE]


def test_a_request_that_is_cancelled_costs_what_was_reserved() -> None:
    stalls = ScriptedReply(text="a b c", stalls_after=1)
    with ScriptedModels(lambda _: stalls) as models:
        streamed = body(stream=True)
        kinds = replies(models, PLAIN, streamed, Budget(model_tokens=100), 2, cancel_at=BEGAN)
        assert kinds == [BEGAN, BROKE]


def test_no_episode_has_the_name_of_an_earlier_one() -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        settings = gateway_settings(models)
        client = ProviderClient(settings)
        names = [Broker(settings, client).episode for _ in range(8)]
        assert len(set(names)) == 8


def test_an_episode_that_has_ended_leaves_its_places_to_the_others() -> None:
    content = message("agent")

    async def run() -> list[bool]:
        settings = gateway_settings(models)
        (provider,) = settings.providers
        places = ProviderQueue(provider, 2)
        client = ProviderClient(settings, {provider: places})
        here, there = socket.socketpair()
        broker = Broker(settings, client)
        broker.limit({"agent": Budget()})
        serving = asyncio.create_task(broker.serve(there))
        reader, writer = await asyncio.open_connection(sock=here)
        writer.write(struct.pack(">IBI", len(content), SEND, 1) + content)
        kind = 0
        while kind != ENDED:
            size, kind, _ = struct.unpack(">IBI", await reader.readexactly(9))
            await reader.readexactly(size)
        others = [asyncio.create_task(places.admit("other", 1, print)) for _ in range(2)]
        await others[0]
        is_admitted = [others[1].done()]
        writer.close()
        await serving
        await asyncio.wait_for(others[1], PATIENCE_S)
        is_admitted.append(others[1].done())
        await client.close()
        return is_admitted

    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert asyncio.run(run()) == [False, True]


def test_a_process_that_does_not_read_its_responses_keeps_no_place() -> None:
    async def run() -> int:
        settings = gateway_settings(models, attempts=1)
        (provider,) = settings.providers
        client = ProviderClient(settings, {provider: ProviderQueue(provider, 1)})
        connections = [socket.socketpair() for _ in range(2)]
        brokers = [Broker(settings, client) for _ in connections]
        for broker in brokers:
            broker.limit({"agent": Budget()})
        served = [
            asyncio.create_task(broker.serve(there))
            for broker, (_, there) in zip(brokers, connections, strict=True)
        ]
        unread, read = [await asyncio.open_connection(sock=here) for here, _ in connections]
        content = message("agent")
        unread[1].write(struct.pack(">IBI", len(content), SEND, 1) + content)
        while not models.asked:
            await asyncio.sleep(0.01)
        read[1].write(struct.pack(">IBI", len(content), SEND, 1) + content)
        kind = 0
        async with asyncio.timeout(PATIENCE_S):
            while kind != ENDED:
                size, kind, _ = struct.unpack(">IBI", await read[0].readexactly(9))
                await read[0].readexactly(size)
        for _, writer in (unread, read):
            writer.close()
        await asyncio.gather(*served)
        await client.close()
        return kind

    with ScriptedModels(lambda _: ScriptedReply(text="x" * (8 << 20))) as models:
        assert asyncio.run(run()) == ENDED


def test_a_large_request_is_sent() -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, PLAIN, body(text="x" * SMALL_BODY_BYTES)) == ENDED


def test_a_message_has_at_most_the_size_of_a_head_and_of_a_body() -> None:
    request = body()
    free = HEAD_BYTES_MAX - 4 - len(json.dumps({**PLAIN, "more": ""}))
    largest, larger = ({**PLAIN, "more": "x" * size} for size in (free, free + 1))
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        limit = len(request)
        assert replies(models, largest, request, Budget(), body_bytes_max=limit) == [ENDED]
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            replies(models, larger, request, Budget(), body_bytes_max=limit)
        assert len(models.asked) == 1


def test_the_broker_charges_the_price_of_a_model() -> None:
    reply = ScriptedReply(text="ok", usage=(8, 2))
    with ScriptedModels(lambda _: reply) as models:
        priced = body(model="m-dear")
        assert replies(models, PLAIN, priced, Budget(model_microusd=15_000), 3) == [
            ENDED,
            ENDED,
            BROKE,
        ]


@pytest.mark.parametrize(
    "forged",
    [
        {"path": "/v1/files"},
        {"path": "@attacker.example/v1/chat/completions"},
        {"headers": {"host": "attacker.example"}},
        {"headers": {"authorization": "Bearer other"}},
        {"provider": "another"},
        {"seat": "another"},
    ],
)
def test_a_forged_request_is_not_sent(forged: dict[str, Any]) -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, {**PLAIN, **forged}) == BROKE
        assert not models.asked


def test_a_provider_gets_the_headers_that_the_gateway_writes() -> None:
    forged = {"content-type": "text/html", "accept": "*/*", "anthropic-version": "any\ttext"}
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert first_reply(models, {**PLAIN, "headers": forged}) == ENDED
        sent = models.asked[0].headers
    assert (sent["content-type"], sent["accept"]) == ("application/json", "application/json")
    assert "anthropic-version" not in sent


def test_a_large_request_that_is_cancelled_while_it_is_parsed_counts() -> None:
    large = message("agent", b"[" + b"0," * SMALL_BODY_BYTES + b"0]")
    small = message("agent", body())

    async def run() -> int:
        settings = gateway_settings(models, attempts=1)
        client = ProviderClient(settings)
        here, there = socket.socketpair()
        broker = Broker(settings, client)
        broker.limit({"agent": Budget(), "other": Budget()})
        serving = asyncio.create_task(broker.serve(there))
        reader, writer = await asyncio.open_connection(sock=here)

        async def answer_to(number: int, content: bytes) -> int:
            writer.write(struct.pack(">IBI", len(content), SEND, number) + content)
            while True:
                size, kind, answered = struct.unpack(">IBI", await reader.readexactly(9))
                await reader.readexactly(size)
                if answered == number and kind in (ENDED, BROKE, FAILED):
                    return int(kind)

        for number in range(0, 2 * REFUSED_MAX, 2):
            writer.write(struct.pack(">IBI", len(large), SEND, number) + large)
            assert await answer_to(number + 1, small) == ENDED
            writer.write(struct.pack(">IBI", 0, CANCEL, number))
        last = await answer_to(2 * REFUSED_MAX, large)
        kind = await answer_to(2 * REFUSED_MAX + 1, small)
        writer.close()
        await serving
        await client.close()
        assert last == BROKE
        return kind

    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        assert asyncio.run(run()) == BROKE


@pytest.mark.parametrize(
    ("head", "forged"),
    [(PLAIN, body(previous_response_id="resp_1")), ({**PLAIN, "provider": "another"}, body())],
    ids=["refused", "of another provider"],
)
def test_a_process_that_sends_many_forged_requests_loses_its_connection(
    head: dict[str, Any], forged: bytes
) -> None:
    with ScriptedModels(lambda _: ScriptedReply(text="ok")) as models:
        calls = Budget(model_calls=100)
        assert replies(models, head, forged, calls, REFUSED_MAX) == [BROKE] * REFUSED_MAX
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            replies(models, head, forged, calls, REFUSED_MAX + 1)
        assert models.asked == []


def test_parallel_requests_of_a_process_exceed_the_budget_by_one_request() -> None:
    encoded = json.dumps(PLAIN).encode()
    content = struct.pack(">I", len(encoded)) + encoded + body()
    requests = 20

    async def run() -> None:
        settings = gateway_settings(models, attempts=1)
        client = ProviderClient(settings)
        here, there = socket.socketpair()
        broker = Broker(settings, client)
        broker.limit({"agent": Budget(model_tokens=2_000)})
        serving = asyncio.create_task(broker.serve(there))
        reader, writer = await asyncio.open_connection(sock=here)
        for number in range(requests):
            writer.write(struct.pack(">IBI", len(content), SEND, number) + content)
        await reader.read()
        writer.close()
        await serving
        await client.close()

    reply = ScriptedReply(text="ok", usage=(1_500, 1), pause_s=0.1)
    with ScriptedModels(lambda _: reply) as models:
        asyncio.run(run())
        assert len(models.asked) == 2


def test_requests_beyond_the_memory_of_a_process_are_read_when_others_have_ended() -> None:
    answers = Event()

    def answer(_: object) -> ScriptedReply:
        answers.wait()
        return ScriptedReply(text="ok")

    encoded = json.dumps(PLAIN).encode()
    content = struct.pack(">I", len(encoded)) + encoded + body()
    requests = 3 * OPEN_BODIES_MAX

    async def run() -> int:
        settings = replace(gateway_settings(models, attempts=1), body_bytes_max=len(content))
        client = ProviderClient(settings)
        here, there = socket.socketpair()
        broker = Broker(settings, client)
        broker.limit({"agent": Budget(model_calls=100)})
        serving = asyncio.create_task(broker.serve(there))
        reader, writer = await asyncio.open_connection(sock=here)
        for number in range(requests):
            writer.write(struct.pack(">IBI", len(content), SEND, number) + content)
        while len(models.asked) <= OPEN_BODIES_MAX:
            await asyncio.sleep(0.01)
        open_requests = len(broker._tasks)
        answers.set()
        ended = 0
        while ended < requests:
            size, kind, _ = struct.unpack(">IBI", await reader.readexactly(9))
            await reader.readexactly(size)
            ended += kind == ENDED
        writer.close()
        await serving
        await client.close()
        return open_requests

    with ScriptedModels(answer) as models:
        assert asyncio.run(run()) == OPEN_BODIES_MAX + 1
        assert len(models.asked) == requests


def test_a_seat_without_budget_or_with_too_many_requests_does_not_stop_another_one() -> None:
    """One seat exceeds its budget, and a third one leaves many requests open."""
    greedy, busy, other = (message(seat) for seat in ("greedy", "busy", "other"))
    answers = Event()

    def answer(asked: AskedOfModel) -> ScriptedReply:
        if asked.request["messages"][0]["content"] == "busy":
            answers.wait()
        return ScriptedReply(text="ok", usage=(1_000_000, 1))

    async def run() -> dict[int, int]:
        settings = gateway_settings(models, attempts=1)
        client = ProviderClient(settings)
        here, there = socket.socketpair()
        broker = Broker(settings, client)
        broker.limit(
            {
                "greedy": Budget(model_tokens=1_000),
                "busy": Budget(model_tokens=10**9),
                "other": Budget(model_tokens=1_000),
            }
        )
        serving = asyncio.create_task(broker.serve(there))
        reader, writer = await asyncio.open_connection(sock=here)
        kinds: dict[int, int] = {}
        sent = [*[greedy] * (REFUSED_MAX + 2), *[busy] * (OPEN_REQUESTS_MAX + 1), other]
        for number, content in enumerate(sent):
            writer.write(struct.pack(">IBI", len(content), SEND, number) + content)
            while content != busy and number not in kinds:
                size, kind, answered = struct.unpack(">IBI", await reader.readexactly(9))
                await reader.readexactly(size)
                if kind in (ENDED, BROKE, FAILED):
                    kinds[answered] = kind
        answers.set()
        writer.close()
        await serving
        await client.close()
        return kinds

    with ScriptedModels(answer) as models:
        kinds = asyncio.run(run())
    assert list(kinds.values()) == [ENDED, *[BROKE] * (REFUSED_MAX + 2), ENDED]


def message(seat: str, content: bytes | None = None) -> bytes:
    """Return the content of a message that sends a request of a seat, by default with its name."""
    encoded = json.dumps({**PLAIN, "seat": seat}).encode()
    return struct.pack(">I", len(encoded)) + encoded + (content or body(text=seat))
