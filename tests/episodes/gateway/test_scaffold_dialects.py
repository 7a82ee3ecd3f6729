"""The scaffolds work in every API, over real sockets, with signed reasoning sent back unchanged."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from fumehood.gateway import responses
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from fumehood_agent import Session
from fumehood_agent.scaffolds import chat_model
from fumehood_agent.scaffolds.chat_model import ChatModel
from fumehood_agent.scaffolds.react import React
from fumehood_agent.scaffolds.settings import ModelSettings
from tests.parts.models import Asker, Script

RESULTS = (b"tool_result", b"function_call_output", b'"role":"tool"', b"functionResponse")
SETTINGS: dict[str, dict[str, Any]] = {
    "chat": {"output_limit_field": "max_completion_tokens", "seed": 7},
    "responses": {"reasoning_effort": "low"},
    "messages": {"top_p": 0.5, "temperature": None},
    "gemini": {"seed": 7, "reasoning_effort": "low"},
}
SENT: dict[str, dict[str, Any]] = {
    "chat": {"max_completion_tokens": 99, "seed": 7, "temperature": 0, "tool_choice": "auto"},
    "responses": {"max_output_tokens": 99, "reasoning": {"effort": "low"}, "tool_choice": "auto"},
    "messages": {"max_tokens": 99, "top_p": 0.5, "tool_choice": {"type": "auto"}},
    "gemini": {
        "generationConfig": {
            "maxOutputTokens": 99,
            "temperature": 0,
            "seed": 7,
            "thinkingConfig": {"thinkingLevel": "low"},
        },
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    },
}


def calls_once(asked: AskedOfModel) -> ScriptedReply:
    if any(word in asked.body for word in RESULTS):
        return ScriptedReply(text="Done.")
    return ScriptedReply(text="I look.", tools=(ToolUse("no_such_tool", {"id": "ax1"}),))


def played(seat: Asker, dialect: str, **settings: Any) -> None:
    settings = {"dialect": dialect, "output_tokens": 99, **SETTINGS[dialect], **settings}
    model = ChatModel(
        "m1", f"{seat.episode.directory}/http.sock", ModelSettings(tool_choice="auto", **settings)
    )
    with closing(model), Session(f"{seat.episode.directory}/grpc.sock") as session:
        React(model).run(session)
    seat.episode.close()


@pytest.mark.parametrize("dialect", SETTINGS)
def test_react_calls_a_tool_and_answers(
    seat: Asker, script: Script, models: ScriptedModels, dialect: str
) -> None:
    script.answers(calls_once)
    before = len(models.asked)
    played(seat, dialect)
    events = seat.episode.events
    assert [event["tool"] for event in events if event["kind"] == "call"] == ["no_such_tool"]
    (end,) = (event["end"] for event in events if event["kind"] == "seat_ended")
    assert end == {"outcome": "finished", "answer": "Done."}
    for asked in models.asked[before:]:
        assert {name: asked.request.get(name) for name in SENT[dialect]} == SENT[dialect]


@pytest.mark.parametrize("dialect", SETTINGS)
def test_a_reply_that_was_cut_ends_as_such(seat: Asker, script: Script, dialect: str) -> None:
    script.says(ScriptedReply(text="one", tools=(ToolUse("look"),), truncated=True))
    played(seat, dialect, unusable_replies=2)
    events = seat.episode.events
    noted = [event["problem"] for event in events if event["kind"] == "model_problem"]
    assert noted == ["reply_truncated"] * 2
    (end,) = (event["end"] for event in events if event["kind"] == "seat_ended")
    assert end == {"outcome": "stopped", "problem": "reply_truncated"}


@pytest.mark.parametrize("dialect", SETTINGS)
def test_a_full_context_ends_as_such(seat: Asker, script: Script, dialect: str) -> None:
    script.says(ScriptedReply(status=400, error="the maximum context length is 9"))
    played(seat, dialect)
    kinds = [event.get("problem") or event.get("end") for event in seat.episode.events]
    assert "context_overflow" in kinds
    assert {"outcome": "stopped", "problem": "context_overflow"} in kinds


SIGNED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "responses": (
        {
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "SIGNED"},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            ],
        },
        ["function_call_output"],
    ),
    "messages": (
        {
            "type": "message",
            "stop_reason": "tool_use",
            "content": [
                {"type": "thinking", "thinking": "a", "signature": "SIGNED"},
                {"type": "tool_use", "id": "c", "name": "look", "input": {}},
            ],
        },
        ["tool_result"],
    ),
    "gemini": (
        {
            "candidates": [
                {
                    "finishReason": "STOP",
                    "content": {
                        "role": "model",
                        "parts": [
                            {
                                "functionCall": {"id": "c", "name": "look", "args": {}},
                                "thoughtSignature": "SIGNED",
                            }
                        ],
                    },
                }
            ]
        },
        ["functionResponse", '"id":"c"'],
    ),
}


@pytest.mark.parametrize("dialect", SIGNED)
def test_signed_reasoning_is_sent_back(
    seat: Asker, script: Script, models: ScriptedModels, dialect: str
) -> None:
    whole, result = SIGNED[dialect]
    script.answers(
        lambda asked: (
            ScriptedReply(text="Done.") if b"SIGNED" in asked.body else ScriptedReply(whole=whole)
        )
    )
    played(seat, dialect)
    last = json.dumps(models.asked[-1].request, separators=(",", ":"))
    assert last.count("SIGNED") == 1
    for part in result:
        assert part in last


def test_agents_and_gateway_recognise_a_full_context_by_the_same_words() -> None:
    assert chat_model.OVERFLOW.pattern == responses.OVERFLOW.pattern
