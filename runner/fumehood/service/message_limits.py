"""The limits of an agent's messages, as a service gets them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.wire.tool_server import ToolServerLimits

_HTTP_ALONE = ("head_bytes", "body_bytes", "request_bytes", "pipelined_requests")
"""Limits that only the HTTP socket has."""


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """The message limits of every seat."""

    seat: SeatLimits = field(default_factory=SeatLimits)
    """Limits of one message."""
    server: ToolServerLimits = field(default_factory=ToolServerLimits)
    """Limits of the gRPC connections."""
    http: Mapping[str, int] = field(default_factory=dict)
    """Limits of the HTTP socket that differ from the defaults, by name. Its class takes long to
    import."""

    def to_json(self) -> JsonObject:
        """Return the limits as a JSON object."""
        return asdict(self)


def message_limits(text: str) -> MessageLimits:
    """Parse limits from a JSON object of names and numbers; the others keep their defaults.

    Raises:
        InputError: the text is malformed, or names an unknown limit.
    """
    try:
        given = json.loads(text)
        http = {name: given[name] for name in (*_HTTP_ALONE, "connections") if name in given}
        seat = {
            limit.name: given.pop(limit.name) for limit in fields(SeatLimits) if limit.name in given
        }
        server = {name: value for name, value in given.items() if name not in _HTTP_ALONE}
        return MessageLimits(SeatLimits(**seat), ToolServerLimits(**server), http)
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"--limits must be a JSON object of known limits: {text[:200]}") from None


def limits_from_json(value: Mapping[str, Any]) -> MessageLimits:
    """Return the limits that :meth:`MessageLimits.to_json` wrote."""
    return MessageLimits(
        SeatLimits(**value["seat"]), ToolServerLimits(**value["server"]), value["http"]
    )
