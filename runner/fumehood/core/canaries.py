"""Finds a text in JSON values, also inside longer texts and in simple encodings."""

from __future__ import annotations

from base64 import b32encode, b64encode
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import unquote

from fumehood.core.character_forms import usual_characters
from fumehood.core.json_values import Json

CHARACTERS_MIN = 8
"""Least number of letters and digits of a text that can be found without false alarms."""


def forms_of(texts: Iterable[str]) -> frozenset[str]:
    """Return what to search for: each text as it is, reversed, and in base64, base32 and hex.

    A text with fewer than :data:`CHARACTERS_MIN` letters and digits has no form.
    """
    forms = set[str]()
    for text in texts:
        if len(_plain(text)) < CHARACTERS_MIN:
            continue
        for shown in {text, text[::-1], text.lower(), text.upper(), text.swapcase()}:
            encoded = shown.encode("utf-8", "surrogatepass")
            forms |= {shown, encoded.hex(), *_base64(encoded), *_base32(encoded)}
    return frozenset(form for form in map(_plain, forms) if len(form) >= CHARACTERS_MIN)


def searchable(value: Json) -> tuple[str, ...]:
    """Return the texts of a JSON value in one piece, as they are and without URL encoding."""
    text = "".join(texts_in(value))
    return tuple({_plain(text), _plain(unquote(unquote(text)))})


def is_mentioned(forms: Collection[str], texts: Iterable[str]) -> bool:
    """Return whether a text contains one of the forms."""
    return any(form in text for text in texts for form in forms)


def _plain(text: str) -> str:
    """Return only the letters and digits, so that separators, case and other forms of the same
    character do not conceal a text."""
    return "".join(filter(str.isalnum, usual_characters(text).casefold()))


def _base64(encoded: bytes) -> Iterator[str]:
    """Yield the characters that represent only these bytes, at each position in a longer text."""
    for before in range(3):
        text = b64encode(bytes(before) + encoded).decode()
        yield text[-(-before * 8 // 6) : (before + len(encoded)) * 8 // 6]


def _base32(encoded: bytes) -> Iterator[str]:
    for before in range(5):
        text = b32encode(bytes(before) + encoded).decode()
        yield text[-(-before * 8 // 5) : (before + len(encoded)) * 8 // 5]


def texts_in(value: Json) -> Iterator[str]:
    """Yield all keys, texts and numbers in a JSON value, in order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
