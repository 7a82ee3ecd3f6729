"""What has to be understood of the three ways to ask a model: how much it may say, and how much it did.

Everything else passes through unread. One dialect a path, one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as a provider reports them; -1 where it has not."""

    input_tokens: int = -1
    output_tokens: int = -1

    def updated(self, other: Usage) -> Usage:
        """Return this usage with whatever ``other`` reports put over it."""
        return Usage(
            other.input_tokens if other.input_tokens >= 0 else self.input_tokens,
            other.output_tokens if other.output_tokens >= 0 else self.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to ask."""

    key_header: Callable[[str], tuple[str, str]]
    """From a key to the header that carries it."""
    bounds: tuple[str, ...]
    """Where a request says how many tokens an answer may have; the largest is believed."""
    answers: tuple[str, ...]
    """Where it says how many answers it wants."""
    usage: Callable[[Mapping[str, Any]], Usage]
    """From a whole answer, or one event of a stream, to what it reports."""
    echoes: int = 0
    """How often an answer may repeat its request."""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _bearer(key: str) -> tuple[str, str]:
    return "authorization", f"Bearer {key}"


def _chat_usage(answer: Mapping[str, Any]) -> Usage:
    usage = _object(answer.get("usage"))
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _responses_usage(answer: Mapping[str, Any]) -> Usage:
    # A whole answer has it at its top, the last event of a stream inside ``response``.
    usage = _object(answer.get("usage")) or _object(_object(answer.get("response")).get("usage"))
    return Usage(_count(usage.get("input_tokens")), _count(usage.get("output_tokens")))


_ANTHROPIC_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _messages_usage(answer: Mapping[str, Any]) -> Usage:
    # ``message_start`` has it inside ``message``, ``message_delta`` and a whole answer at their top.
    usage = _object(answer.get("usage")) or _object(_object(answer.get("message")).get("usage"))
    if _count(usage.get("input_tokens")) < 0:
        return Usage(output_tokens=_count(usage.get("output_tokens")))
    read = sum(max(0, _count(usage.get(name))) for name in _ANTHROPIC_INPUT)
    return Usage(read, _count(usage.get("output_tokens")))


DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": Dialect(
        _bearer, ("max_completion_tokens", "max_tokens"), ("n",), _chat_usage
    ),
    # Instructions and tools stand in three events of a stream: created, in progress, completed.
    "/v1/responses": Dialect(_bearer, ("max_output_tokens",), (), _responses_usage, echoes=3),
    "/v1/messages": Dialect(lambda key: ("x-api-key", key), ("max_tokens",), (), _messages_usage),
}
"""Path → dialect."""
