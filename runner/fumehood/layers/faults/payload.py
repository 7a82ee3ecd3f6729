"""Reading numbers and texts out of triggers and payloads, in the reference's terms.

The reference converts these values with its host language's casts (spec parts 4.2 and 4.7, corrections C5
and C7). The same casts are used here, once, when the episode is opened; what the reference would crash on
later is refused then, by field.
"""

from __future__ import annotations

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import Json, JsonObject


def field_name(rule: FaultRule, *path: str) -> str:
    """Return where in the task record a value of this rule stands."""
    return ".".join((f"fault_plan[{rule.index}]", *path))


def to_integer(value: Json, field: str) -> int:
    """Cast to an integer as the reference does: truncates 2.9, takes true, and text with blanks and signs.

    Raises:
        SpecError: the value has no integer.
    """
    try:
        return int(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SpecError(field, f"must be a whole number, not {value!r}") from None


def to_number(value: Json, field: str) -> float:
    """Cast to a float as the reference does.

    Raises:
        SpecError: the value has no number.
    """
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SpecError(field, f"must be a number, not {value!r}") from None


def payload_integer(rule: FaultRule, key: str, default: int) -> int:
    """Return a payload number; an explicit null is refused, absence means ``default``."""
    return to_integer(rule.payload.get(key, default), field_name(rule, "payload", key))


def payload_text(rule: FaultRule, key: str, default: str) -> str:
    """Return a payload text; anything else, null included, counts by its text form."""
    return str(rule.payload.get(key, default))


def speakable(text: str, field: str) -> str:
    """Return ``text``, which an agent is to be told.

    Raises:
        SpecError: it holds half a surrogate pair, which no text on the wire can.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SpecError(field, "holds half a surrogate pair, which nobody can be told") from None
    return text


def payload_object(rule: FaultRule, key: str) -> JsonObject:
    """Return a payload object; anything that is not an object counts as empty."""
    value = rule.payload.get(key)
    return value if isinstance(value, dict) else {}
