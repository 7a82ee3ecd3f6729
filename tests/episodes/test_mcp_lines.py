"""MCP over a pipe: every request is answered with its ID, in all protocol revisions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from tests.parts.http import HttpSeat
from tests.parts.listening import listening
from tests.parts.specs import episode_spec

NEWEST = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Pipe:
    """What the helper does with lines."""

    def __init__(self, http: HttpSeat) -> None:
        self._http = http
        self._session = ""

    def say(self, line: str) -> Any:
        headers = {"mcp-session-id": self._session} if self._session else {}
        answer = self._http.open("/mcp/line", line, headers)
        self._session = answer.getheader("mcp-session-id") or self._session
        body = answer.read()
        return json.loads(body) if body else None

    def ask(self, number: int, method: str, **params: Any) -> Any:
        return self.say(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        )


@pytest.fixture(scope="module")
def directory() -> Iterator[str]:
    with (
        ServicePool(1, ServiceOptions(http=HttpOffer())) as pool,
        pool.lease() as client,
        listening(client, episode_spec()) as one,
    ):
        yield one.directory


@pytest.fixture
def pipe(directory: str) -> Iterator[Pipe]:
    with closing(HttpSeat(directory)) as http:
        yield Pipe(http)


@pytest.mark.slow
def test_a_client_of_the_newest_revision_needs_no_session(pipe: Pipe) -> None:
    assert pipe.ask(1, "server/discover", _meta=NEWEST)["result"]["instructions"] == "Do it."
    called = pipe.ask(2, "tools/call", name="get_account", arguments={"id": "ax1"}, _meta=NEWEST)
    assert json.loads(called["result"]["content"][0]["text"]) == {
        "account": {"id": "ax1", "tier": "basic"}
    }


def test_a_client_of_an_older_revision_keeps_its_session(pipe: Pipe) -> None:
    client = {"name": "test", "version": "0"}
    hello = pipe.ask(
        7, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client
    )
    assert (hello["id"], hello["result"]["protocolVersion"]) == (7, "2025-06-18")
    assert pipe.say('{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None
    tools = pipe.ask(8, "tools/list")["result"]["tools"]
    assert len(tools) == 6


@pytest.mark.parametrize("revision", ["2099-01-01", "né", "a\nb"])
def test_an_unknown_revision_is_rejected_with_the_request_id(pipe: Pipe, revision: str) -> None:
    meta = {**NEWEST, "io.modelcontextprotocol/protocolVersion": revision}
    answer = pipe.ask(3, "server/discover", _meta=meta)
    assert (answer["id"], "error" in answer) == (3, True)


def test_a_call_before_initialization_is_refused_with_its_id(pipe: Pipe) -> None:
    answer = pipe.ask("x", "tools/list")  # type: ignore[arg-type]
    assert (answer["id"], "error" in answer) == ("x", True)


@pytest.mark.parametrize("line", ["{", "[]", "[" * 100_000, "\xff"])
def test_malformed_lines_are_answered_or_ignored(pipe: Pipe, line: str) -> None:
    answer = pipe.say(line)
    assert answer is None or (answer["id"], "error" in answer) == (None, True)
