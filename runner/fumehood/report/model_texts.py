"""The words of a conversation with a model, from stored requests and responses of any API."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fumehood.core.encryption import MARK
from fumehood.core.json_values import JsonObject
from fumehood.core.trace import ModelExchange

Line = tuple[str, str]
"""Who speaks, and the text."""
ENCRYPTED_NOTE = "the model requests of this episode are encrypted and not shown"


class Conversation:
    """What a seat's agent and its models said, request by request."""

    def __init__(self, exchanges: Sequence[ModelExchange]) -> None:
        self._exchanges = {(each.seat, each.key, each.occurrence): each for each in exchanges}
        self._counts = Counter[tuple[str, str]]()
        self._said: dict[str, list[Line]] = {}
        """By seat, the messages of its last request."""
        self.is_encrypted = any(each.request.startswith(MARK.encode()) for each in exchanges)

    def lines(self, seat: str, key: str) -> list[Line]:
        """Return what the seat's next request with this digest added, and the reply."""
        self._counts[seat, key] += 1
        exchange = self._exchanges.get((seat, key, self._counts[seat, key]))
        if exchange is None or self.is_encrypted:
            return []
        asked = list(_asked(_parsed(exchange.request)))
        before = self._said.get(seat, [])
        self._said[seat] = asked
        known = 0
        while known < min(len(before), len(asked)) and before[known] == asked[known]:
            known += 1
        # The first messages after the known ones may be the last reply, which was shown.
        added = [line for line in asked[known:] if line[0] not in ("assistant", "model")]
        return [*added, ("model", _replied(exchange) or f"(status {exchange.status})")]

    def transcript(self, events: Iterable[JsonObject]) -> Iterator[tuple[str, str, str]]:
        """Yield seat, speaker and text of everything that was said, in the order of a trace."""
        for event in events:
            if event["kind"] == "model_call":
                seat = str(event["seat"])
                for who, text in self.lines(seat, str(event["request"])):
                    yield seat, who, text


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


_OF_THE_MODEL = frozenset({"function_call", "custom_tool_call", "reasoning"})
"""Items of the responses API without a role that the model wrote."""


def _asked(request: Any) -> Iterator[Line]:
    if not isinstance(request, dict):
        return
    for name in ("system", "instructions", "systemInstruction"):
        if text := _text(request.get(name)):
            yield "system", text
    for name in ("messages", "input", "contents"):
        messages = request.get(name)
        if isinstance(messages, str):
            yield "user", messages
        for message in messages if isinstance(messages, list) else []:
            if isinstance(message, dict):
                kind = str(message.get("type"))
                who = "assistant" if kind in _OF_THE_MODEL else kind
                yield str(message.get("role") or who), _text(message)


def _replied(exchange: ModelExchange) -> str:
    if not exchange.content_type.startswith("text/event-stream"):
        value = _parsed(exchange.response)
        return _text(value) if isinstance(value, dict) else ""
    parts = []
    for line in exchange.response.split(b"\n"):
        event = _parsed(line[5:]) if line.startswith(b"data:") else None
        # These events of the responses API repeat the text of earlier ones.
        repeats = str(event.get("type", "")) if isinstance(event, dict) else ""
        if isinstance(event, dict) and not repeats.endswith((".done", ".completed", ".added")):
            parts.append(_text(event, stripped=False))
    return "".join(parts)


_NAMED = ("functionCall", "functionResponse", "function", "name")
_WORDS = ("error", "thinking", "reasoning_content", "text", "refusal", "partial_json")
_PARTS = ("choices", "candidates", "message", "delta", "content", "parts", "output", "tool_calls")
_DATA = ("input", "arguments", "args", "response", "result")
"""Fields that contain words: names of tools, texts, further parts, and arguments and results."""


def _text(value: Any, *, stripped: bool = True) -> str:
    if isinstance(value, str):
        return value
    between = "\n" if stripped else ""
    if isinstance(value, list):
        return between.join(filter(None, (_text(item, stripped=stripped) for item in value)))
    if not isinstance(value, dict):
        return ""
    texts = []
    for name in (*_WORDS, *_PARTS, *_NAMED, *_DATA):
        inner = value.get(name)
        if name in _DATA and isinstance(inner, dict | list):
            texts.append(json.dumps(inner, ensure_ascii=False) if inner else "")
        else:
            texts.append(_text(inner, stripped=stripped))
    return (" " if "name" in value else between).join(filter(None, texts))
