"""The model APIs that the gateway accepts, by path: where each states limits, usage and the end.

Sources: the references of OpenAI (chat completions, responses, embeddings), Anthropic (messages)
and Google (generateContent).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from fumehood.core.json_values import Json


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as a provider reports them; -1 if it has not."""

    input_tokens: int = -1
    output_tokens: int = -1
    cached_tokens: int = -1
    """Part of the input that the provider had cached."""
    reasoning_tokens: int = -1
    """Part of the output that is reasoning."""

    def to_json(self) -> dict[str, Json]:
        """Return the reported numbers by name."""
        return {
            field.name.removesuffix("_tokens"): number
            for field, number in zip(fields(self), astuple(self), strict=True)
            if number >= 0
        }

    def updated(self, other: Usage) -> Usage:
        """Return this usage with the numbers that ``other`` reports."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Usage(*(new if new >= 0 else old for old, new in pairs))


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """What a whole response, or one event of a stream, says about the reply."""

    usage: Usage = Usage()
    finish_reason: str = ""
    """As the provider names it; empty if it is not stated."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Text of the arguments of tool calls; texts with the same key belong together."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One model API."""

    key_header: Callable[[str], tuple[str, str]]
    """Converts a key to the header that contains it."""
    bounds: tuple[str, ...]
    """Fields of a request that limit the tokens of the response; the largest value counts. A dot
    separates an object from its field."""
    answers: tuple[str, ...]
    """Fields of a request with the number of responses."""
    part: Callable[[Mapping[str, Any]], ReplyPart | None]
    """Reads a whole response or an event; None if it has not the form of this API."""
    echoes: int = 0
    """How often a response may repeat its request."""
    has_output: bool = True
    """Whether a response has output tokens."""


FINISH_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "STOP", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(
        ("content_filter", "refusal", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT"),
        "content_filter",
    ),
    "model_context_window_exceeded": "context_overflow",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
}
"""Name of a provider → name in traces; any other name is ``other``."""


def _count(value: object) -> int:
    """Return a number of tokens that fits into 64 bits; -1 for another value."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if is_count else -1  # type: ignore[return-value]


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return (item for item in items if isinstance(item, dict))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _bearer(key: str) -> tuple[str, str]:
    return "authorization", f"Bearer {key}"


def _chat_part(response: Mapping[str, Any]) -> ReplyPart | None:
    if not isinstance(response.get("choices"), list):
        return None
    usage = _object(response.get("usage"))
    reasons, arguments = list[str](), list[tuple[str, str]]()
    for choice in _objects(response["choices"]):
        reasons.append(_text(choice.get("finish_reason")))
        message = _object(choice.get("message")) or _object(choice.get("delta"))
        for at, call in enumerate(_objects(message.get("tool_calls"))):
            key = f"{choice.get('index')}.{call.get('index', at)}"
            arguments.append((key, _text(_object(call.get("function")).get("arguments"))))
    return ReplyPart(
        Usage(
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            _count(_object(usage.get("prompt_tokens_details")).get("cached_tokens")),
            _count(_object(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        ),
        "length" if "length" in reasons else next(filter(None, reasons), ""),
        tuple(arguments),
    )


def _responses_part(response: Mapping[str, Any]) -> ReplyPart | None:
    # At the top of a whole response, and inside ``response`` in some events of a stream.
    whole = _object(response.get("response")) or response
    if not isinstance(whole.get("output"), list):
        return ReplyPart() if _text(response.get("type")) else None
    usage = _object(whole.get("usage"))
    items = list(_objects(whole["output"]))
    calls = [item for item in items if item.get("type") == "function_call"]
    reason = _text(whole.get("status"))
    if reason == "incomplete":
        reason = _text(_object(whole.get("incomplete_details")).get("reason"))
    elif reason == "completed" and calls:
        reason = "tool_calls"
    ended = reason and reason not in ("in_progress", "queued")
    return ReplyPart(
        Usage(
            _count(usage.get("input_tokens")),
            _count(usage.get("output_tokens")),
            _count(_object(usage.get("input_tokens_details")).get("cached_tokens")),
            _count(_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
        ),
        reason if ended else "",
        tuple((str(at), _text(call.get("arguments"))) for at, call in enumerate(calls))
        if ended
        else (),
    )


_ANTHROPIC_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _messages_part(response: Mapping[str, Any]) -> ReplyPart | None:
    # Inside ``message`` in ``message_start``; at the top of ``message_delta`` and of a whole
    # response, which contains arguments as objects.
    kind = _text(response.get("type"))
    if not kind or (kind == "message" and not isinstance(response.get("content"), list)):
        return None
    delta = _object(response.get("delta"))
    usage = _object(response.get("usage")) or _object(_object(response.get("message")).get("usage"))
    output = _count(usage.get("output_tokens"))
    counted = Usage(output_tokens=output)
    if _count(usage.get("input_tokens")) >= 0:
        read = sum(max(0, _count(usage.get(name))) for name in _ANTHROPIC_INPUT)
        counted = Usage(read, output, _count(usage.get("cache_read_input_tokens")))
    reason = _text(response.get("stop_reason")) or _text(delta.get("stop_reason"))
    written = _text(delta.get("partial_json"))
    return ReplyPart(counted, reason, ((str(response.get("index")), written),) if written else ())


def _gemini_part(response: Mapping[str, Any]) -> ReplyPart | None:
    usage = _object(response.get("usageMetadata"))
    candidates = response.get("candidates")
    if not isinstance(candidates, list) and not usage:
        return None
    # ``promptTokenCount`` includes cached tokens; ``candidatesTokenCount`` excludes thoughts.
    thoughts = _count(usage.get("thoughtsTokenCount"))
    output = _count(usage.get("candidatesTokenCount"))
    reasons = [_text(candidate.get("finishReason")) for candidate in _objects(candidates)]
    return ReplyPart(
        Usage(
            _count(usage.get("promptTokenCount")),
            output if thoughts < 0 else max(0, output) + thoughts,
            _count(usage.get("cachedContentTokenCount")),
            thoughts,
        ),
        "MAX_TOKENS" if "MAX_TOKENS" in reasons else next(filter(None, reasons), ""),
    )


def _embeddings_part(response: Mapping[str, Any]) -> ReplyPart | None:
    if not isinstance(response.get("data"), list):
        return None
    usage = _object(response.get("usage"))
    return ReplyPart(Usage(_count(usage.get("prompt_tokens")), 0), "stop")


CHAT_PATH = "/v1/chat/completions"
RESPONSES_PATH = "/v1/responses"
MESSAGES_PATH = "/v1/messages"
EMBEDDINGS_PATH = "/v1/embeddings"
GEMINI_PATH = "/v1beta/models/MODEL:generateContent"
STREAM_QUERY = "?alt=sse"
"""Makes Gemini stream events instead of a list."""

DIALECTS: Mapping[str, Dialect] = {
    CHAT_PATH: Dialect(_bearer, ("max_completion_tokens", "max_tokens"), ("n",), _chat_part),
    # Three events of a stream repeat instructions and tools: created, in progress, completed.
    RESPONSES_PATH: Dialect(_bearer, ("max_output_tokens",), (), _responses_part, echoes=3),
    MESSAGES_PATH: Dialect(lambda key: ("x-api-key", key), ("max_tokens",), (), _messages_part),
    GEMINI_PATH: Dialect(
        lambda key: ("x-goog-api-key", key),
        ("generationConfig.maxOutputTokens",),
        ("generationConfig.candidateCount",),
        _gemini_part,
    ),
    EMBEDDINGS_PATH: Dialect(_bearer, (), (), _embeddings_part, has_output=False),
}
"""Path → dialect. The path of Gemini contains the model; see :func:`read_path`."""

_GEMINI = re.compile(
    r"/v1(?:beta)?/models/([A-Za-z0-9][A-Za-z0-9._-]{0,127})"
    r":(generateContent|streamGenerateContent\?alt=sse)"
)


@dataclass(frozen=True, slots=True)
class ReadPath:
    """The path of a model request."""

    api: str
    """Key of ``DIALECTS``."""
    model: str = ""
    """Empty if the body contains it."""
    streams: bool = False
    """Whether the path asks for a stream; other APIs do so in the body."""


def read_path(path: str) -> ReadPath | None:
    """Return what the path of a request states; None if no API has it.

    Args:
        path: with the query, if the API has one.
    """
    match = _GEMINI.fullmatch(path)
    if match is not None:
        return ReadPath(GEMINI_PATH, match[1], match[2].startswith("stream"))
    return ReadPath(path) if path in DIALECTS and path != GEMINI_PATH else None


def key_header(path: str, key: str) -> tuple[str, str]:
    """Return the header with the key of a provider.

    Raises:
        KeyError: no API has the path.
    """
    read = read_path(path)
    return DIALECTS[read.api if read else path].key_header(key)
