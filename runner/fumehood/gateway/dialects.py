"""The model APIs that the gateway accepts, by path: where each states token limits and usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as a provider reports them; -1 if it has not."""

    input_tokens: int = -1
    output_tokens: int = -1

    def updated(self, other: Usage) -> Usage:
        """Return this usage with the numbers that ``other`` reports."""
        return Usage(
            other.input_tokens if other.input_tokens >= 0 else self.input_tokens,
            other.output_tokens if other.output_tokens >= 0 else self.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Dialect:
    """One model API."""

    key_header: Callable[[str], tuple[str, str]]
    """Converts a key to the header that contains it."""
    bounds: tuple[str, ...]
    """Fields of a request that limit the tokens of the response; the largest value counts."""
    answers: tuple[str, ...]
    """Fields of a request with the number of responses."""
    usage: Callable[[Mapping[str, Any]], Usage]
    """Returns the usage that a whole response, or one event of a stream, reports."""
    echoes: int = 0
    """How often a response may repeat its request."""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _bearer(key: str) -> tuple[str, str]:
    return "authorization", f"Bearer {key}"


def _chat_usage(response: Mapping[str, Any]) -> Usage:
    usage = _object(response.get("usage"))
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _responses_usage(response: Mapping[str, Any]) -> Usage:
    # At the top of a whole response, and inside ``response`` in the last event of a stream.
    usage = _object(response.get("usage")) or _object(
        _object(response.get("response")).get("usage")
    )
    return Usage(_count(usage.get("input_tokens")), _count(usage.get("output_tokens")))


_ANTHROPIC_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _messages_usage(response: Mapping[str, Any]) -> Usage:
    # Inside ``message`` in ``message_start``; at the top of ``message_delta`` and of a whole
    # response.
    usage = _object(response.get("usage")) or _object(_object(response.get("message")).get("usage"))
    if _count(usage.get("input_tokens")) < 0:
        return Usage(output_tokens=_count(usage.get("output_tokens")))
    read = sum(max(0, _count(usage.get(name))) for name in _ANTHROPIC_INPUT)
    return Usage(read, _count(usage.get("output_tokens")))


RESPONSES_PATH = "/v1/responses"

DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": Dialect(
        _bearer, ("max_completion_tokens", "max_tokens"), ("n",), _chat_usage
    ),
    # Three events of a stream repeat instructions and tools: created, in progress, completed.
    RESPONSES_PATH: Dialect(_bearer, ("max_output_tokens",), (), _responses_usage, echoes=3),
    "/v1/messages": Dialect(lambda key: ("x-api-key", key), ("max_tokens",), (), _messages_usage),
}
"""Path → dialect."""
