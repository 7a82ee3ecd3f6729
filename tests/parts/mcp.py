"""A plain MCP client: JSON-RPC over one connection with the Streamable HTTP transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.parts.http import HttpSeat

PROTOCOL = "2025-06-18"


class McpSeat:
    """One MCP session with one seat."""

    def __init__(self, directory: str) -> None:
        self.http = HttpSeat(directory)
        self._headers = {"accept": "application/json, text/event-stream"}
        self._number = 0
        client = {"name": "test", "version": "0"}
        asked = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self.initialized = self.request("initialize", asked)["result"]
        self._headers["mcp-protocol-version"] = PROTOCOL
        status, _ = self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert status == 202

    def close(self) -> None:
        """Hang up."""
        self.http.close()

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send one request and return the answer."""
        self._number += 1
        status, body = self._post(
            {"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(params or {})}
        )
        answer: dict[str, Any] = json.loads(body)
        assert status == 200, answer
        assert answer["id"] == self._number
        return answer

    def call(self, name: str, arguments: Mapping[str, Any], call_id: str = "") -> dict[str, Any]:
        """Call one tool and return its result."""
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if call_id:
            params["_meta"] = {"fumehood.v1/call_id": call_id}
        result: dict[str, Any] = self.request("tools/call", params)["result"]
        return result

    def _post(self, message: Mapping[str, Any]) -> tuple[int, bytes]:
        answer = self.http.open("/mcp", json.dumps(message), self._headers)
        self._headers["mcp-session-id"] = answer.getheader("mcp-session-id", "")
        return answer.status, answer.read()
