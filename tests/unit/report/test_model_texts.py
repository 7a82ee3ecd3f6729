"""The words of stored model requests are readable for every API, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fumehood.core.trace import ModelExchange
from fumehood.report.model_texts import Conversation
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse, events, whole
from fumehood_agent.scaffolds.dialects import DIALECTS
from fumehood_agent.scaffolds.settings import ModelSettings

REPLY = ScriptedReply(text="I look.", tools=(ToolUse("look", {"id": "ax1"}),))


def exchange(key: str, request: Any, response: bytes, kind: str) -> ModelExchange:
    return ModelExchange(
        seat="agent",
        key=key,
        occurrence=1,
        request=json.dumps(request).encode(),
        status=200,
        content_type=kind,
        response=response,
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True])
def test_each_request_shows_what_is_new(dialect: str, streamed: bool) -> None:
    api, settings = DIALECTS[dialect], ModelSettings(dialect=dialect)
    path = api.path("m")
    answer = whole(path, "m", REPLY)
    response, kind = json.dumps(answer).encode(), "application/json"
    if streamed:
        response = b"".join(events(path, "m", REPLY, reports=True))
        kind = "text/event-stream"
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it?"},
    ]
    reply = api.read(answer)
    longer = [*messages, reply.message, reply.calls[0].result("on the table")]
    conversation = Conversation(
        [
            exchange("k1", api.write("m", settings, messages, []), response, kind),
            exchange("k2", api.write("m", settings, longer, []), response, kind),
        ]
    )
    first = conversation.lines("agent", "k1")
    assert [text for _, text in first[:2]] == ["Be brief.", "Where is it?"]
    assert first[-1][0] == "model"
    words = first[-1][1]
    assert "I look." in words
    assert words.count("ax1") == 1
    second = conversation.lines("agent", "k2")
    assert "on the table" in second[0][1]
    assert not any("Where is it?" in text for _, text in second)


def test_a_transcript_follows_the_trace() -> None:
    request = {"messages": [{"role": "user", "content": "Where?"}]}
    answer = json.dumps(whole("/v1/chat/completions", "m", ScriptedReply(text="Here."))).encode()
    conversation = Conversation([exchange("k1", request, answer, "application/json")])
    events: list[dict[str, Any]] = [
        {"kind": "opened"},
        {"kind": "model_call", "seat": "agent", "request": "k1"},
        {"kind": "model_call", "seat": "agent", "request": "not stored"},
    ]
    assert list(conversation.transcript(events)) == [
        ("agent", "user", "Where?"),
        ("agent", "model", "Here."),
    ]


def test_an_unknown_or_malformed_body_shows_nothing_wrong() -> None:
    broken = exchange("k1", "a", b"\xff{", "application/json")
    conversation = Conversation([broken])
    assert conversation.lines("agent", "k1") == [("model", "(status 200)")]
    assert conversation.lines("agent", "k1") == []
    assert conversation.lines("agent", "k2") == []
