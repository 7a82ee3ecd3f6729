"""A model request cannot make a provider do more than the run grants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood.wire.control_client import ControlClient
from tests.parts.listening import listening
from tests.parts.models import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Asker,
    Script,
    chat,
    gateway_settings,
    new_service,
    question,
    with_budget,
)
from tests.parts.specs import episode_spec

URL = "https://attacker.example/?leak=1"
BETA = "beta:mcp-client-2025-11-20"


def image(source: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image", "source": source}]}]


def refused_events(seat: Asker) -> list[dict[str, Any]]:
    seat.episode.close()
    return [event for event in seat.episode.events if event["kind"] == "model_refused"]


ROUTES: list[tuple[str, dict[str, Any], str]] = [
    (RESPONSES, {"tools": [{"type": "web_search"}]}, "web_search"),
    (RESPONSES, {"tools": [{"type": "mcp", "server_url": URL}]}, "remote_mcp"),
    (MESSAGES, {"mcp_servers": [{"type": "url", "url": URL}]}, "remote_mcp"),
    (
        CHAT,
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": URL}}],
                }
            ]
        },
        "image_url",
    ),
    (MESSAGES, {"messages": image({"type": "url", "url": URL})}, "image_url"),
    (RESPONSES, {"previous_response_id": "r_of_another_episode"}, "stored_responses"),
    (RESPONSES, {"store": True}, "stored_responses"),
]


@pytest.mark.parametrize(("path", "fields", "capability"), ROUTES)
def test_a_capability_is_refused_and_recorded(
    seat: Asker,
    models: ScriptedModels,
    path: str,
    fields: dict[str, Any],
    capability: str,
) -> None:
    before = len(models.asked)
    status, answer = seat.ask(path, question(path, **fields))
    assert (status, answer["error"]["code"]) == (403, "capability_not_granted")
    assert f"models.grants: {capability}" in answer["error"]["message"]
    assert len(models.asked) == before, "the provider received nothing"
    (event,) = refused_events(seat)
    assert event["reason"] == "capability_not_granted"
    assert list(event["needs"]) == [capability]


GRANTS = {capability for _, _, capability in ROUTES} | {BETA, "field:top_k"}


@pytest.fixture(scope="module")
def granted_client(models: ScriptedModels) -> Iterator[ControlClient]:
    offer = HttpOffer(None, gateway_settings(models, grants=frozenset(GRANTS)))
    with ServicePool(1, ServiceOptions(http=offer)) as pool, pool.lease() as lent:
        yield lent


@pytest.fixture
def granted(granted_client: ControlClient, script: Script) -> Iterator[Asker]:
    """A seat of a service that grants what the others refuse; the provider answers."""
    script.says(ScriptedReply(text="ok"))
    with listening(granted_client, episode_spec()) as episode:
        asker = Asker(episode)
        with closing(asker.http):
            yield asker


@pytest.mark.slow
@pytest.mark.parametrize(("path", "fields", "capability"), ROUTES)
def test_a_granted_capability_is_sent(
    granted: Asker,
    models: ScriptedModels,
    path: str,
    fields: dict[str, Any],
    capability: str,
) -> None:
    assert granted.ask(path, question(path, **fields))[0] == 200
    (name, value), *_ = fields.items()
    assert models.asked[-1].request[name] == value


@pytest.mark.slow
def test_a_granted_capability_grants_no_other(script: Script, models: ScriptedModels) -> None:
    script.says(ScriptedReply(text="ok"))
    with new_service(models, grants=frozenset({"image_url"})) as seat:
        answers = {
            capability: seat.ask(path, question(path, **fields))[0]
            for path, fields, capability in ROUTES
        }
    assert {capability for capability, status in answers.items() if status == 200} == {"image_url"}


def test_a_beta_header_is_refused_unless_it_is_granted(
    seat: Asker, granted: Asker, models: ScriptedModels
) -> None:
    headers = {"anthropic-beta": BETA.removeprefix("beta:"), "anthropic-version": "2023-06-01"}
    text = json.dumps(question(MESSAGES))
    before = len(models.asked)
    assert seat.http.send(MESSAGES, text, headers)[0] == 403
    assert len(models.asked) == before
    assert granted.http.send(MESSAGES, text, headers)[0] == 200
    assert models.asked[-1].headers["anthropic-beta"] == "mcp-client-2025-11-20"


def test_no_other_header_reaches_the_provider(
    seat: Asker, script: Script, models: ScriptedModels
) -> None:
    script.says(ScriptedReply(text="ok"))
    headers = {
        "content-type": "application/json; charset=utf-16",
        "accept": "text/html",
        "anthropic-version": "2023-06-01\t",
        "openai-organization": "another",
        "x-forwarded-for": "1.2.3.4",
    }
    assert seat.http.send(MESSAGES, json.dumps(question(MESSAGES)), headers)[0] == 200
    sent = models.asked[-1].headers
    assert sent["content-type"] == sent["accept"] == "application/json"
    assert not {"openai-organization", "x-forwarded-for"} & sent.keys()


def test_a_field_that_no_dialect_has_is_refused_by_its_name(
    seat: Asker, models: ScriptedModels
) -> None:
    status, answer = seat.ask(CHAT, chat(plugins=[{"id": "web"}], top_k=3))
    assert (status, answer["error"]["code"]) == (403, "capability_not_granted")
    message = answer["error"]["message"]
    assert "plugins; top_k" in message
    assert "field:plugins, field:top_k" in message


def test_a_field_can_be_granted(granted: Asker, models: ScriptedModels) -> None:
    assert granted.ask(CHAT, chat(top_k=3))[0] == 200
    assert granted.ask(CHAT, chat(top_k=3, top_n=3))[0] == 403
    assert models.asked[-1].request["top_k"] == 3


def test_a_provider_stores_no_response_unless_that_is_granted(
    seat: Asker, granted: Asker, models: ScriptedModels
) -> None:
    assert seat.ask(RESPONSES, question(RESPONSES))[0] == 200
    assert models.asked[-1].request["store"] is False
    assert granted.ask(RESPONSES, question(RESPONSES))[0] == 200
    assert "store" not in models.asked[-1].request


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m-cheap", "max_tokens": 1, "MODEL": "m-dear", "Max_Tokens": 100000}',
        b'{"model": "m-cheap", "model": "m-dear"}',
        json.dumps({"model": "m1"}).encode("utf-16"),
        json.dumps({"model": "m1"}).encode("utf-16-le"),
        json.dumps({"model": "m1"}).encode("utf-32"),
        b"\xef\xbb\xbf" + json.dumps({"model": "m1"}).encode(),
        b'{"model": "m1", "temperature": NaN}',
        rb'{"model": "m1\ud800"}',
        b'{"model": "m%s"}' % (b"1" * 256),
        b'{"model": "m%s"}' % (b"1" * 10_000_000),
        b'{"model": ""}',
    ],
    ids=range(11),
)
def test_an_ambiguous_request_is_refused_with_one_line(
    seat: Asker, models: ScriptedModels, path: str, body: bytes
) -> None:
    before = len(models.asked)
    status, said = seat.http.send(path, body)
    answer = json.loads(said)["error"]
    assert (status, answer["code"]) in ((400, "malformed"), (404, "unknown_model"))
    assert "\n" not in answer["message"]
    assert len(answer["message"]) < 300
    assert len(models.asked) == before
    assert len(json.dumps(refused_events(seat))) < 500


@pytest.mark.slow
@with_budget(model_tokens=100_000_000)
def test_a_large_request_for_an_unknown_model_is_not_parsed(seat: Asker) -> None:
    rest = b'"messages": [' + b"x" * 31 * 1024 * 1024
    for name, code in ((b"unknown-model", "unknown_model"), (b"m1", "malformed")):
        _, said = seat.http.send(CHAT, b'{"model": "%s", ' % name + rest)
        assert json.loads(said)["error"]["code"] == code


def test_a_large_structure_is_refused_while_it_arrives(seat: Asker) -> None:
    body = b'{"model": "m1", "messages": [' + b"[]," * 300_000 + b"[]]}"
    status, said = seat.http.send(CHAT, body)
    assert (status, json.loads(said)["error"]["code"]) == (413, "too_large")


@pytest.mark.slow
def test_the_recorded_refusals_of_a_seat_are_bounded(seat: Asker) -> None:
    text = json.dumps(chat(top_k=1))
    with closing(seat.http):
        statuses = [seat.http.send(CHAT, text)[0] for _ in range(1100)]
    assert set(statuses) == {403}
    assert len(refused_events(seat)) == 1000
