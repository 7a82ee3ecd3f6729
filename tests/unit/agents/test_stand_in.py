"""The model that stands in when agents are looked at, in the words of every provider."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest

from fumehood.agent_check.stand_in import CALLS, DONE, stand_in

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
WAYS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "/v1/chat/completions": ("messages", CHAT_TOOLS),
    "/v1/responses": ("input", RESPONSE_TOOLS),
    "/v1/messages": ("messages", MESSAGE_TOOLS),
}
each_way = pytest.mark.parametrize("path", WAYS)


def ask(path: str, *told: dict[str, Any], tools: list[dict[str, Any]] | None = None) -> str:
    """Return what it says, as text."""
    key, described = WAYS[path]
    offered = described if tools is None else tools
    request = {"model": "any", key: list(told), "max_tokens": 10, "tools": offered}
    with stand_in({"list_jobs"}) as model:
        posted = Request(model.address + path, json.dumps(request).encode(), method="POST")
        with urlopen(posted, timeout=10) as answer:
            return str(answer.read().decode())


@each_way
def test_it_asks_for_a_tool_that_takes_nothing(path: str) -> None:
    said = ask(path, USER)
    assert "list_jobs" in said
    assert DONE.text not in said


def test_it_prefers_the_tools_of_a_seat_whatever_an_agent_calls_them() -> None:
    own = {"type": "function", "function": {"name": "Exit", "parameters": NOTHING}}
    longer = {"type": "function", "function": {"name": "seat__list_jobs", "parameters": SCHEMA}}
    assert "seat__list_jobs" in ask("/v1/chat/completions", USER, tools=[own, longer])


@each_way
def test_it_is_done_after_two_results(path: str) -> None:
    assert "list_jobs" in ask(path, USER, RESULTS[path])
    assert DONE.text in ask(path, USER, *[RESULTS[path]] * CALLS)


@each_way
def test_it_begins_again_when_the_user_says_more(path: str) -> None:
    assert "list_jobs" in ask(path, USER, *[RESULTS[path]] * CALLS, USER)


@each_way
def test_without_tools_it_only_speaks(path: str) -> None:
    assert DONE.text in ask(path, USER, tools=[])
