"""A table of text: for a page, Markdown and a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fumehood.report.safe_text import safe

_MARKUP = re.compile(r"([\\`*_\[\]<>|~&$])")


@dataclass(frozen=True, slots=True)
class TextTable:
    """The first columns name a row, the others hold its numbers."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    names: int = 1
    """So many columns at the left are names; the others are set to the right."""
    note: str = ""
    """What has to be known to read it."""


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(safe(text).split()))


def markdown_table(table: TextTable) -> str:
    """Return a table in Markdown, its title above and its note below."""
    ruler = [":--"] * table.names + ["--:"] * (len(table.header) - table.names)
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
