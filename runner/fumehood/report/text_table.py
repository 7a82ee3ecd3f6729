"""A table of text: for a page, Markdown and a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fumehood.report.safe_text import safe

_MARKUP = re.compile(r"([\\`*_\[\]<>|~&$])")


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose first columns name a row and whose other columns hold numbers."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    names: int = 1
    """Columns at the left that hold names; columns with numbers are aligned to the right."""
    trailing_text: int = 0
    """Columns at the right that hold text and are aligned to the left."""
    note: str = ""
    """How to read the table."""


def markdown_text(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(safe(text).split()))


def markdown_table(table: TextTable) -> str:
    """Return a table in Markdown, with its title above and its note below."""
    numbers = len(table.header) - table.names - table.trailing_text
    ruler = [":--"] * table.names + ["--:"] * numbers + [":--"] * table.trailing_text
    lines = [
        f"### {markdown_text(table.title)}",
        "",
        _row(table.header),
        f"| {' | '.join(ruler)} |",
    ]
    lines += [_row(row) for row in table.rows]
    if table.note:
        lines += ["", markdown_text(table.note)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(markdown_text(cell) for cell in cells)} |"
