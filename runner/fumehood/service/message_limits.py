"""What an agent may send, as the orchestrator tells a service when it starts it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from fumehood.core.errors import InputError
from fumehood.service.arguments import SeatLimits
from fumehood.wire.tool_server import ToolServerLimits

_HTTP_ALONE = ("head_bytes", "body_bytes", "request_bytes", "pipelined_requests")
"""Bounds that the first socket does not know."""


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """Of every seat."""

    seat: SeatLimits = field(default_factory=SeatLimits)
    """Of what a message may hold."""
    server: ToolServerLimits = field(default_factory=ToolServerLimits)
    """Of what a connection may do."""
    http: Mapping[str, int] = field(default_factory=dict)
    """Of the second socket, by name, where it is not the usual; its own class takes long to import."""


def message_limits(text: str) -> MessageLimits:
    """Return limits from JSON of an object: name → number; what is not named stays as it is.

    Raises:
        InputError: that is not what it is.
    """
    try:
        given = json.loads(text)
        http = {name: given[name] for name in (*_HTTP_ALONE, "connections") if name in given}
        seat = {one.name: given.pop(one.name) for one in fields(SeatLimits) if one.name in given}
        server = {name: value for name, value in given.items() if name not in _HTTP_ALONE}
        return MessageLimits(SeatLimits(**seat), ToolServerLimits(**server), http)
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"no limits of messages: {text[:200]}") from None
