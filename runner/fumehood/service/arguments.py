"""Reading the JSON that agents send, which may be anything."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import NoReturn

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Refusal, RefusalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatLimits:
    """What the wall lets through. Every bound is inclusive."""

    argument_bytes: int = 1024 * 1024
    """Of one call's arguments, as UTF-8."""
    argument_depth: int = 64
    """Levels of objects and lists in one call's arguments, the outermost included."""
    name_bytes: int = 1024
    """Of a tool's name, as UTF-8."""
    call_id_bytes: int = 64
    """Of a call's own name, as UTF-8."""
    answer_bytes: int = 1024 * 1024
    """Of a submitted answer or reason, as UTF-8."""
    refusals: int = 1000
    """Messages of one seat that are refused and taken down; the seat hears nothing else after that."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number that no float can hold")
    return number


_MALFORMED = Refusal(RefusalKind.MALFORMED)
_decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def read_arguments(text: str, limits: SeatLimits) -> JsonObject | Refusal:
    """Return the arguments of a call, or why they were not let through.

    Args:
        text: JSON of one object; empty means no arguments.
        limits: of size and depth.
    """
    if not text:
        return {}
    too_large = refuse_large(text, limits.argument_bytes)
    if too_large is not None:
        return too_large
    try:
        value: Json = _decoder.decode(text)
    except RecursionError:
        # The decoder's own bound is the interpreter's stack, far beyond any sensible limit.
        return Refusal(RefusalKind.TOO_DEEP, limits.argument_depth, _brackets(text))
    except ValueError:
        return _MALFORMED
    if not isinstance(value, dict):
        return _MALFORMED
    # Depth first, because what comes after it may go as deep as the value does.
    return (
        _refuse_deep(text, value, limits.argument_depth) or _refuse_surrogates(text, value) or value
    )


def _refuse_deep(text: str, value: JsonObject, limit: int) -> Refusal | None:
    # Depth needs at least as many opening brackets, so most calls need no walk.
    depth = _depth(value) if _brackets(text) > limit else 0
    return Refusal(RefusalKind.TOO_DEEP, limit, depth) if depth > limit else None


def refuse_large(text: str, limit_bytes: int) -> Refusal | None:
    """Return a refusal of a text that is longer than ``limit_bytes`` as UTF-8."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return Refusal(RefusalKind.TOO_LARGE, limit_bytes, size) if size > limit_bytes else None


def _brackets(text: str) -> int:
    return text.count("{") + text.count("[")


def _depth(value: Json) -> int:
    deepest, open_values = 0, [(value, 1)]
    while open_values:
        inner, level = open_values.pop()
        items = (
            inner.values()
            if isinstance(inner, dict)
            else inner
            if isinstance(inner, list)
            else None
        )
        if items is not None:
            deepest = max(deepest, level)
            open_values.extend((item, level + 1) for item in items)
    return deepest


def _refuse_surrogates(text: str, value: JsonObject) -> Refusal | None:
    """Refuse half a surrogate pair, which no text on the wire or in a file can hold."""
    has_escapes = "\\ud" in text or "\\uD" in text
    try:
        (json.dumps(value, ensure_ascii=False) if has_escapes else text).encode("utf-8")
    except UnicodeEncodeError:
        return _MALFORMED
    return None
