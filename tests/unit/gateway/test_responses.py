"""What a response states about its reply is read, also from a large one without parsing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fumehood.core.outcome import ModelProblem
from fumehood.gateway.dialects import (
    CHAT_PATH,
    DIALECTS,
    EMBEDDINGS_PATH,
    GEMINI_PATH,
    MESSAGES_PATH,
    RESPONSES_PATH,
    Usage,
)
from fumehood.gateway.responses import ResponseReader, read_response

LONG = 'a "usage": {"prompt_tokens": 1, "input_tokens": 1} ' * 20_000
RESPONSES: Mapping[str, dict[str, Any]] = {
    CHAT_PATH: {
        "choices": [{"index": 0, "message": {"content": LONG}}],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 2},
        },
    },
    RESPONSES_PATH: {
        "output": [{"type": "message", "content": LONG}],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    MESSAGES_PATH: {
        "type": "message",
        "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 1},
        "content": [{"type": "text", "text": LONG}],
    },
    GEMINI_PATH: {
        "candidates": [{"content": {"parts": [{"text": LONG}]}}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
    },
    EMBEDDINGS_PATH: {
        "data": [{"embedding": [0.125] * 100_000}],
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    },
}


def usage_of(path: str, body: bytes, *, usage_only: bool) -> Usage:
    reader = ResponseReader("application/json", DIALECTS[path], keep=False, usage_only=usage_only)
    reader.take(body)
    reader.close()
    return reader.usage


@pytest.mark.parametrize("path", RESPONSES)
@pytest.mark.parametrize("indent", [None, 2])
def test_the_usage_of_a_large_response_is_the_same_without_parsing_it(
    path: str, indent: int | None
) -> None:
    body = json.dumps(RESPONSES[path], indent=indent).encode()
    usage = usage_of(path, body, usage_only=True)
    assert usage == usage_of(path, body, usage_only=False)
    assert usage.input_tokens in (7, 8)


@pytest.mark.parametrize("path", RESPONSES)
def test_a_large_response_without_usage_states_none(path: str) -> None:
    response = {name: value for name, value in RESPONSES[path].items() if "usage" not in name}
    assert usage_of(path, json.dumps(response).encode(), usage_only=True) == Usage()
    assert usage_of(path, b"[" * 300_000 + b'"usage":{', usage_only=True) == Usage()


def test_the_size_of_a_response_is_the_sum_of_its_parts() -> None:
    reader = ResponseReader("application/json", DIALECTS[CHAT_PATH], keep=False)
    assert reader.size_bytes == 0
    reader.take(b"123")
    reader.take(b"45")
    assert reader.size_bytes == 5


def test_a_long_event_of_a_stream_is_read() -> None:
    """The last event of OpenAI's responses repeats the whole reply."""
    long = "x" * 2_000_000
    usage = {"input_tokens": 7, "output_tokens": 3}
    response = {"output": [{"content": long}], "usage": usage, "metadata": {"a": long}}
    line = b"data: " + json.dumps({"response": response}).encode() + b"\n\n"
    reader = ResponseReader("text/event-stream", DIALECTS[RESPONSES_PATH], keep=False)
    for start in range(0, len(line), 65_536):
        reader.take(line[start : start + 65_536])
    reader.close()
    assert (reader.usage.input_tokens, reader.usage.output_tokens) == (7, 3)


@pytest.mark.parametrize(
    ("status", "problems"),
    [
        (400, [ModelProblem.REQUEST_REFUSED]),
        (408, []),
        (409, []),
        (425, []),
        (429, []),
        (499, [ModelProblem.REQUEST_REFUSED]),
        (500, []),
    ],
)
def test_only_a_refusal_of_the_request_is_a_problem_with_the_model(
    status: int, problems: list[ModelProblem]
) -> None:
    reader = ResponseReader("application/json", DIALECTS[CHAT_PATH], keep=False)
    reader.take(b'{"error": {}}')
    assert list(reader.problems(status, whole=True)) == problems


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        (b'{"a": 1}', {"body": {"a": 1}}),
        (b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"a": 2}\n\n', {"events": [{"a": 1}, {"a": 2}]}),
        (b"a page \xff", {"text": "a page \ufffd"}),
    ],
    ids=["JSON", "events", "text"],
)
def test_a_monitor_sees_the_status_and_the_content_of_a_response(
    body: bytes, seen: dict[str, Any]
) -> None:
    assert read_response(body, 203) == {"status": 203, **seen}
