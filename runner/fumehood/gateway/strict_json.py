"""Strict JSON for model requests: every parser reads the same value from an accepted request.

Providers interpret these in different ways: a repeated key, keys that differ only by case (Go's
``encoding/json`` ignores case), an encoding other than UTF-8, and ``NaN``. The gateway refuses all
of them, and sends a provider the text of :func:`to_bytes`, never the bytes of the agent. RFC 8259
leaves repeated keys to the parser (section 4), requires UTF-8 (8.1), and has no ``NaN`` (6).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from fumehood.core.json_values import (
    AmbiguousJson,
    Json,
    JsonObject,
    finite_number,
    no_constant,
    unique_keys,
)

VALUES_MAX = 250_000
"""Maximum number of values in one request."""
DEPTH_MAX = 128
"""Maximum number of levels of objects and lists in one request, including the outermost."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class InvalidJson(ValueError):
    """A request that parsers may read differently, or not at all; the message is one line."""


class StructureScan:
    """Counts the values of a JSON text while it arrives, so that no large structure is parsed.

    A list of empty lists needs 40 times its size in memory and seconds to parse. A long string
    needs neither.
    """

    def __init__(self) -> None:
        self.values = 1
        """An upper bound of the number of values so far."""
        self._is_in_string = False
        self._backslash = b""

    def take(self, part: bytes) -> bool:
        """Count the values in the next bytes; return False beyond ``VALUES_MAX``."""
        text = self._backslash + part
        cut = (len(text) - len(text.rstrip(b"\\"))) % 2
        text, self._backslash = text[: len(text) - cut], text[len(text) - cut :]
        # Without escaped quotes, every quote starts or ends a string.
        pieces = text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        outside = b"".join(pieces[self._is_in_string :: 2])
        self._is_in_string ^= len(pieces) % 2 == 0
        self.values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        return self.values <= VALUES_MAX


def parse_object(body: bytes) -> JsonObject:
    """Parse a request.

    Raises:
        InvalidJson: it is not one JSON object that all parsers read in the same way.
    """
    if body.startswith(BYTE_ORDER_MARK):
        raise InvalidJson("the request must be UTF-8 without a byte order mark")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJson(f"the request is not UTF-8: byte {error.start}") from None
    try:
        value: Json = _decoder.decode(text)
    except RecursionError:
        raise InvalidJson(f"the request has more than {DEPTH_MAX} levels") from None
    except AmbiguousJson as error:
        raise InvalidJson(str(error)) from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"the request is not JSON: {error}") from None
    except ValueError:
        # The interpreter bounds the digits of an integer (sys.get_int_max_str_digits).
        raise InvalidJson("the request is not JSON: an integer has too many digits") from None
    if not isinstance(value, dict):
        raise InvalidJson("the request must be one JSON object with a model name")
    if text.count("{") + text.count("[") > DEPTH_MAX and _is_deep(value):
        raise InvalidJson(f"the request has more than {DEPTH_MAX} levels")
    return value


def to_bytes(value: JsonObject) -> bytes:
    """Return the text of a parsed request: compact, UTF-8, keys in the order of the request.

    The order is kept, because models answer in the order of a schema's properties.

    Raises:
        InvalidJson: a string has half of a surrogate pair, which UTF-8 cannot encode.
    """
    try:
        return _encode(value).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidJson("a string has half of a surrogate pair") from None


def _unambiguous_keys(pairs: list[tuple[str, Json]]) -> JsonObject:
    value = unique_keys(pairs)
    if len(value) > 1 and len({key.casefold() for key in value}) != len(value):
        known = dict[str, str]()
        for key in value:
            other = known.setdefault(key.casefold(), key)
            if other != key:
                names = f"{other[:64]!a} and {key[:64]!a}"
                raise AmbiguousJson(f"the keys {names} differ only by case")
    return value


def _is_deep(value: JsonObject) -> bool:
    level: list[Json] = [value]
    for _ in range(DEPTH_MAX):
        level = [part for item in level for part in _parts(item) if isinstance(part, dict | list)]
    return bool(level)


def _parts(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_decoder = json.JSONDecoder(
    object_pairs_hook=_unambiguous_keys, parse_constant=no_constant, parse_float=finite_number
)
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
