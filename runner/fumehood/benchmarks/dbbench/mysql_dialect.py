"""Translates MySQL statements to SQLite."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `[^`]*` | [^'"`]+ | .""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = frozenset("'\"`")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}
_RENAMED = re.compile(r"\b(left|right)(?=\s*\()", re.IGNORECASE)
_TRANSACTION = re.compile(
    r"\s*(begin|start\s+transaction|commit|rollback)\s*(work\s*)?;?\s*", re.IGNORECASE
)
_SHOW_TABLES = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
_COLUMNS = re.compile(
    r"\s*(?:describe|desc|(?:show\s+(?:full\s+)?columns|show\s+fields)\s+(?:from|in))\s+(.+?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)


def is_of_transactions(statement: str) -> bool:
    """Tell whether a statement only begins or ends a transaction; each statement is one here."""
    return _TRANSACTION.fullmatch(statement) is not None


def asks_for_tables(statement: str) -> bool:
    """Tell whether a statement asks which tables there are."""
    return _SHOW_TABLES.fullmatch(statement) is not None


def table_asked_about(statement: str) -> str | None:
    """Return the table whose columns a statement asks for; None where it asks for something else."""
    asked = _COLUMNS.fullmatch(statement)
    return asked[1].strip("`\"'") if asked else None


def to_sqlite(statement: str) -> str:
    """Return a statement as SQLite reads it; from a text that does not end on, it is left as it is."""
    said = []
    for found in _TOKEN.finditer(statement):
        if found[0] in _QUOTES:
            # Looking for the end of every further quote would take time that grows with their square.
            said.append(statement[found.start() :])
            break
        said.append(_token(found[0]))
    return "".join(said)


def _token(token: str) -> str:
    if len(token) > 1 and token[0] in "'\"":
        inner = token[1:-1].replace(token[0] * 2, token[0])
        plain = _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), inner)
        return "'" + plain.replace("'", "''") + "'"
    return token if token[0] == "`" else _RENAMED.sub(r"mysql_\1", token)


def compare(one: str, other: str) -> int:
    """Compare as MySQL's usual collations do: neither case nor accents nor blanks at the end count."""
    first, second = _folded(one), _folded(other)
    return (first > second) - (first < second)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower().rstrip(" ")
    parts = unicodedata.normalize("NFD", text.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part)).rstrip(" ")


def _text(value: Any) -> str:
    return str(value)


def _concat(*values: Any) -> str | None:
    return None if None in values else "".join(map(_text, values))


def _concat_ws(separator: Any, *values: Any) -> str | None:
    given = [_text(value) for value in values if value is not None]
    return None if separator is None else _text(separator).join(given)


def _left(value: Any, length: Any) -> str | None:
    return None if None in (value, length) else _text(value)[: max(int(length), 0)]


def _right(value: Any, length: Any) -> str | None:
    if None in (value, length):
        return None
    text = _text(value)
    return text[max(len(text) - max(int(length), 0), 0) :]


def _locate(part: Any, whole: Any) -> int | None:
    return None if None in (part, whole) else _text(whole).lower().find(_text(part).lower()) + 1


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "char_length": (1, lambda value: None if value is None else len(_text(value))),
    "concat": (-1, _concat),
    "concat_ws": (-1, _concat_ws),
    "if": (3, lambda condition, one, other: one if condition else other),
    "locate": (2, _locate),
    "mysql_left": (2, _left),
    "mysql_right": (2, _right),
}
"""Name → how many arguments, and what it does."""
