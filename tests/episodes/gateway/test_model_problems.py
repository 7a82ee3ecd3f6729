"""The gateway records what went wrong with a reply, and what the provider reports about it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.parts.models import CHAT, MESSAGES, RESPONSES, Asker, Script, question

GEMINI = "/v1beta/models/m1:generateContent"
GEMINI_STREAM = "/v1beta/models/m1:streamGenerateContent?alt=sse"
EMBEDDINGS = "/v1/embeddings"
LOOK = ToolUse("look", {"id": "1"})


def ask(seat: Asker, path: str, *, streamed: bool = False) -> None:
    """Send one request and read the whole response."""
    if path == GEMINI:
        path = GEMINI_STREAM if streamed else GEMINI
        request: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "a"}]}]}
    else:
        request = question(path, stream=streamed)
    seat.http.send(path, json.dumps(request))


def problems(seat: Asker) -> list[str]:
    seat.episode.close()
    events = [event for event in seat.episode.events if event["kind"] == "model_problem"]
    assert {event["source"] for event in events} <= {"gateway"}
    return [event["problem"] for event in events]


each_api = pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES, GEMINI])
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True])


@each_api
@whole_and_streamed
def test_a_reply_that_was_cut_is_a_problem(
    seat: Asker, script: Script, path: str, streamed: bool
) -> None:
    script.says(ScriptedReply(text="one two", truncated=True))
    ask(seat, path, streamed=streamed)
    assert problems(seat) == ["reply_truncated"]
    assert [call["finish_reason"] for call in seat.calls()] == ["length"]


@each_api
@whole_and_streamed
def test_a_usual_reply_is_no_problem(
    seat: Asker, script: Script, path: str, streamed: bool
) -> None:
    script.says(ScriptedReply(text="one", tools=(LOOK,), usage=(30, 7)))
    ask(seat, path, streamed=streamed)
    assert problems(seat) == []
    (call,) = seat.calls()
    assert call["finish_reason"] in ("tool_calls", "stop")


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@whole_and_streamed
@pytest.mark.parametrize("text", ["{", "[]", '"a"'])
def test_arguments_that_are_no_object_are_a_problem(
    seat: Asker, script: Script, path: str, streamed: bool, text: str
) -> None:
    script.says(ScriptedReply(tools=(LOOK, ToolUse("look", text=text, call_id="c2"))))
    ask(seat, path, streamed=streamed)
    assert problems(seat) == ["arguments_unparseable"]


@pytest.mark.parametrize(
    ("status", "error", "problem"),
    [
        (400, "This model's maximum context length is 8192 tokens.", "context_overflow"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "context_overflow"),
        (400, "The input token count (9) exceeds the maximum", "context_overflow"),
        (400, "'max_tokens' is not supported with this model.", "request_refused"),
        (404, "no such model", "request_refused"),
    ],
)
@each_api
def test_a_refusal_of_the_provider_is_a_problem(
    seat: Asker, script: Script, path: str, status: int, error: str, problem: str
) -> None:
    script.says(ScriptedReply(status=status, error=error))
    ask(seat, path)
    assert problems(seat) == [problem]


@each_api
def test_a_response_in_another_form_is_a_problem(seat: Asker, script: Script, path: str) -> None:
    script.says(ScriptedReply(text="a", whole={"detail": "a page of a proxy"}))
    ask(seat, path)
    assert problems(seat) == ["reply_unparseable"]


def test_the_trace_contains_all_numbers_that_a_provider_reports(
    seat: Asker, script: Script
) -> None:
    usage = {
        "prompt_tokens": 50,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    choice = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    script.says(ScriptedReply(whole={"choices": [choice], "usage": usage}))
    began_ns = time.monotonic_ns()
    ask(seat, CHAT)
    (call,) = seat.calls()
    passed_us = (time.monotonic_ns() - began_ns) // 1000
    assert call["reported"] == {"input": 50, "output": 20, "cached": 40, "reasoning": 15}
    assert call["spent"]["model_tokens"] == 70
    record = next(
        record for record in seat.episode.records if '"kind":"model_call"' in record.event_json
    )
    assert 0 < record.duration_us <= passed_us


def test_gemini_charges_thoughts_as_output(seat: Asker, script: Script) -> None:
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 5, "thoughtsTokenCount": 15}
    content = {"role": "model", "parts": [{"text": "a"}]}
    candidates = [{"content": content, "finishReason": "STOP"}]
    script.says(ScriptedReply(whole={"candidates": candidates, "usageMetadata": usage}))
    ask(seat, GEMINI)
    (call,) = seat.calls()
    assert call["reported"] == {"input": 50, "output": 20, "reasoning": 15}
    assert call["model"] == "m1"


def test_embeddings_have_no_output_to_charge(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(usage=(30, 0)))
    status, body = seat.ask(EMBEDDINGS, {"model": "m1", "input": "hello"})
    assert (status, len(body["data"])) == (200, 1)
    (call,) = seat.calls()
    assert call["spent"]["model_tokens"] == 30


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/models/m1:streamGenerateContent",
        "/v1beta/models/m1:countTokens",
        "/v1beta/models/../x:generateContent",
        "/v1beta/models/a%2Fb:generateContent",
        "/v1beta/cachedContents",
        "/v1beta/models/MODEL:generateContent/x",
    ],
)
def test_other_paths_of_gemini_are_refused(seat: Asker, path: str) -> None:
    status, _ = seat.http.send(path, json.dumps({"contents": []}))
    assert status in (400, 404)
