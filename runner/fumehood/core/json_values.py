"""JSON values: their type, their copies, their canonical text and its digest.

Canonical text is JSON with keys sorted by code point, no blanks, and every character beyond ASCII
escaped. ``1`` and ``1.0`` differ, and integers have no bound, so equal texts mean equal values.
``docs/canonical_json.md`` has test values for other languages.
"""

from __future__ import annotations

import json
import json.encoder
import math
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NoReturn

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Any JSON value. Treated as immutable after it is passed on: copy it before changing it."""

JsonObject = dict[str, Json]


def _encoder_of(
    *, sort_keys: bool = False, ascii_only: bool = True, blank: str = ""
) -> Callable[[object], str]:
    """Return a function that writes JSON on one line, with a blank after each separator or none.

    ``JSONEncoder.encode`` creates its compiled encoder anew for each value, which takes three times
    as long as writing the arguments of a call. The encoder here has no state, so threads share it:
    it does not look for values that contain themselves, which end as ``RecursionError``.
    """
    encoder = json.JSONEncoder(
        sort_keys=sort_keys,
        separators=(f",{blank}", f":{blank}"),
        ensure_ascii=ascii_only,
        check_circular=False,
    )
    compiled: Any = getattr(json.encoder, "c_make_encoder", None)
    if compiled is None:
        return encoder.encode
    text = getattr(json.encoder, "encode_basestring_ascii" if ascii_only else "encode_basestring")
    parts = compiled(
        *(None, encoder.default, text, None),
        *(encoder.key_separator, encoder.item_separator, sort_keys, False, True),
    )
    join = "".join
    return lambda value: join(parts(value, 0))


_encode_canonical = _encoder_of(sort_keys=True)
_encode_ordered = _encoder_of()
_encode_short = _encoder_of(ascii_only=False)
_encode_spaced = _encoder_of(ascii_only=False, blank=" ")


def canonical_json(value: object) -> str:
    """Return the text that all equal JSON values have."""
    return _encode_canonical(value)


def canonical_around(value: JsonObject, name: str) -> tuple[str, str]:
    """Return the canonical text of an object before and after the value of one more member.

    Args:
        value: the object, without the member.
        name: of the member.
    """
    before = _encode_canonical({key: item for key, item in value.items() if key < name})[:-1]
    after = _encode_canonical({key: item for key, item in value.items() if key > name})[1:]
    start = f"{before}{',' * (before != '{')}{_encode_canonical(name)}:"
    return start, f"{',' * (after != '}')}{after}"


def ordered_json(value: object) -> str:
    """Return compact ASCII JSON text that keeps the order of keys, for agents."""
    return _encode_ordered(value)


def short_json(value: object) -> str:
    """Return compact JSON text that keeps the order of keys and all characters."""
    return _encode_short(value)


def spaced_json(value: object) -> str:
    """Return :func:`short_json` with a blank after each comma and colon, for readers."""
    return _encode_spaced(value)


def json_bytes(value: object) -> int:
    """Return the size of ``value`` as compact JSON in UTF-8, bytes."""
    return len(_encode_short(value).encode("utf-8", "surrogatepass"))


def digest_json(value: object) -> str:
    """Return the hex SHA-256 of the canonical text of ``value``."""
    return sha256(_encode_canonical(value).encode("ascii")).hexdigest()


def copy_json(value: Json) -> Json:
    """Return a copy that shares nothing mutable with ``value``."""
    if isinstance(value, dict):
        return copy_object(value)
    if isinstance(value, list):
        return [copy_json(item) if item.__class__ in _CONTAINERS else item for item in value]
    return value


def copy_object(value: Mapping[str, Json]) -> JsonObject:
    """Return a copy of a JSON object that shares nothing mutable with it."""
    return {
        key: copy_json(item) if item.__class__ in _CONTAINERS else item
        for key, item in value.items()
    }


_CONTAINERS = frozenset((dict, list))
"""Types that need a recursive copy. JSON values have no subclasses of these."""


class AmbiguousJson(ValueError):
    """Text that JSON parsers read in different ways, or that RFC 8259 does not allow."""


def unique_keys(pairs: list[tuple[str, Json]]) -> JsonObject:
    """Return the object with these members; a hook for ``json`` (RFC 8259, section 4).

    Raises:
        AmbiguousJson: a key occurs twice.
    """
    value = dict(pairs)
    if len(value) != len(pairs):
        names = set[str]()
        for name, _ in pairs:
            if name in names:
                raise AmbiguousJson(f"the key {name[:64]!a} occurs twice")
            names.add(name)
    return value


def finite_number(text: str) -> float:
    """Return a number with a fraction or exponent; a hook for ``json``.

    Raises:
        AmbiguousJson: it is beyond the range of a double.
    """
    number = float(text)
    if math.isinf(number):
        raise AmbiguousJson(f"{text[:64]} is too large for a number")
    return number


def no_constant(name: str) -> NoReturn:
    """Refuse ``NaN`` and ``Infinity``; a hook for ``json`` (RFC 8259, section 6).

    Raises:
        AmbiguousJson: always.
    """
    raise AmbiguousJson(f"{name} is not a JSON number")


def as_object(value: object) -> JsonObject:
    """Return a JSON object; empty for any other value."""
    return value if isinstance(value, dict) else {}


def type_word(value: object) -> str:
    """Return the JSON Schema type of ``value``, such as ``integer``."""
    # In Python a boolean is an integer, so it comes first.
    words = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    )
    other = "null" if value is None else "object"
    return next((word for kind, word in words if isinstance(value, kind)), other)


BRACKETS_MAX, COMMAS_MAX = 1_000_000, 4_000_000


def is_slow_to_parse(text: str | bytes) -> bool:
    """Return whether JSON may have so many values that all threads of a process would wait for
    seconds until it is parsed. Brackets and commas in texts count, too."""
    encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    brackets = encoded.count(b"[") + encoded.count(b"{")
    return brackets > BRACKETS_MAX or encoded.count(b",") > COMMAS_MAX
