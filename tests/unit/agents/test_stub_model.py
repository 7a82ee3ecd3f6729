"""The stub model of the agent check, in the format of every provider."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest

from fumehood.agent_check.stub_model import (
    CALLS,
    DONE,
    FINAL_ANSWER,
    SHELL_CALL,
    SHELL_END,
    stub_model,
)

SCHEMA = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
NOTHING = {"type": "object", "properties": {}}
USER: dict[str, Any] = {"role": "user", "content": "Do it."}

CHAT_TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": schema}}
    for name, schema in (("needs_a", SCHEMA), ("list_jobs", NOTHING))
]
RESPONSE_TOOLS = [{"type": "function", **tool["function"]} for tool in CHAT_TOOLS]
MESSAGE_TOOLS = [
    {"name": "needs_a", "input_schema": SCHEMA},
    {"name": "list_jobs", "input_schema": NOTHING},
]

RESULTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"role": "tool", "tool_call_id": "c", "content": "[]"},
    "/v1/responses": {"type": "function_call_output", "call_id": "c", "output": "[]"},
    "/v1/messages": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
}
FORMATS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "/v1/chat/completions": ("messages", CHAT_TOOLS),
    "/v1/responses": ("input", RESPONSE_TOOLS),
    "/v1/messages": ("messages", MESSAGE_TOOLS),
}
each_format = pytest.mark.parametrize("path", FORMATS)


def ask(path: str, *messages: dict[str, Any], tools: list[dict[str, Any]] | None = None) -> str:
    """Return its reply as text."""
    key, described = FORMATS[path]
    offered = described if tools is None else tools
    request = {"model": "any", key: list(messages), "max_tokens": 10, "tools": offered}
    with stub_model({"list_jobs"}) as model:
        posted = Request(model.address + path, json.dumps(request).encode(), method="POST")
        with urlopen(posted, timeout=10) as answer:
            return str(answer.read().decode())


@each_format
def test_it_requests_a_tool_without_arguments(path: str) -> None:
    reply = ask(path, USER)
    assert "list_jobs" in reply
    assert DONE.text not in reply


def test_it_prefers_the_tools_of_the_seat_also_with_a_prefix() -> None:
    own = {"type": "function", "function": {"name": "Exit", "parameters": NOTHING}}
    longer = {"type": "function", "function": {"name": "seat__list_jobs", "parameters": SCHEMA}}
    assert "seat__list_jobs" in ask("/v1/chat/completions", USER, tools=[own, longer])


@each_format
def test_it_ends_after_two_results(path: str) -> None:
    assert "list_jobs" in ask(path, USER, RESULTS[path])
    assert DONE.text in ask(path, USER, *[RESULTS[path]] * CALLS)


@each_format
def test_it_starts_again_after_another_user_message(path: str) -> None:
    assert "list_jobs" in ask(path, USER, *[RESULTS[path]] * CALLS, USER)


@each_format
def test_without_tools_it_replies_with_text(path: str) -> None:
    assert DONE.text in ask(path, USER, tools=[])


def test_it_writes_commands_for_a_shell_and_ends_with_its_marker() -> None:
    schema = {"type": "object", "properties": {"command": {}}, "required": ["command"]}
    shell = {"type": "function", "function": {"name": "bash", "parameters": schema}}
    user = {"role": "user", "content": f"To end, print {SHELL_END}."}
    path = "/v1/chat/completions"
    assert SHELL_CALL in ask(path, user, tools=[shell])
    assert SHELL_END in ask(path, user, *[RESULTS[path]] * CALLS, tools=[shell])


def test_it_ends_with_the_tool_of_an_agent_that_reports_results_as_the_user() -> None:
    final = {"type": "function", "function": {"name": FINAL_ANSWER, "parameters": SCHEMA}}
    called = {"role": "assistant", "content": "Calling tools: list_jobs"}
    result = {"role": "user", "content": "Observation: []"}
    path = "/v1/chat/completions"
    tools = [*CHAT_TOOLS, final]
    assert "list_jobs" in ask(path, USER, called, result, tools=tools)
    assert FINAL_ANSWER in ask(path, USER, *[called, result] * CALLS, tools=tools)


def test_its_calls_have_different_ids() -> None:
    path = "/v1/chat/completions"
    first, second = (ask(path, USER, *[RESULTS[path]] * results) for results in (0, 1))
    ids = [
        json.loads(reply)["choices"][0]["message"]["tool_calls"][0]["id"]
        for reply in (first, second)
    ]
    assert len(set(ids)) == 2
