"""The table language × behaviour, as it stands in the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fumehood.agent_check.protocol_case import Vector
from tests.architecture.project import ROOT
from tests.conformance.agents.languages import Language

PAGE = ROOT / "docs" / "agent_conformance.md"
BEGIN, END = "<!-- table: make conformance -->", "<!-- end of table -->"
HOLDS, FAILS, LACKS = "yes", "**no**", "–"

Shape = tuple[tuple[str, ...], Mapping[str, str], frozenset[tuple[str, str]]]
"""Languages; behaviours by vector; what is not to be had, by vector and language."""


def table(
    languages: Sequence[Language],
    vectors: Sequence[Vector],
    engines: Sequence[str],
    failed: Mapping[tuple[str, str], str],
) -> str:
    """Return the table, with what was proven and where.

    Args:
        languages: its columns.
        vectors: its rows.
        engines: on which every cell was tried.
        failed: by vector and language, what went wrong.
    """
    head = [
        "vector",
        "behaviour",
        *(f"{language.name}<br>{language.way}" for language in languages),
    ]
    rows = [[f"`{vector.name}`", vector.behaviour] for vector in vectors]
    for row, vector in zip(rows, vectors, strict=True):
        row += [_cell(language, vector, failed) for language in languages]
    lines = [head, ["---"] * len(head), *rows]
    reasons = sorted(
        f"* {language.name}, `{name}`: {reason}"
        for language in languages
        for name, reason in language.lacks.items()
    )
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    tried = f"Each was tried on {', '.join(engines)}."
    return "\n\n".join([BEGIN, text, tried, *(["\n".join(reasons)] if reasons else []), END])


def written(page: str, new_table: str) -> str:
    """Return the page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    return before + new_table + rest.partition(END)[2]


def shape_of(languages: Sequence[Language], vectors: Sequence[Vector]) -> Shape:
    """Return what the table has to show, whatever comes of a try."""
    return shape_written(table(languages, vectors, (), {}))


def shape_written(page: str) -> Shape:
    """Return what the table of a page shows; a cell that failed is in no shape."""
    lines = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    rows = [re.split(r" \| ", line.strip("| ")) for line in lines if line.startswith("|")]
    head, _, *body = rows
    behaviours = {row[0]: row[1] for row in body}
    lacking = {(row[0], head[at]) for row in body for at, cell in enumerate(row) if cell == LACKS}
    proven = {HOLDS, LACKS}
    unproven = {
        (row[0], f"not proven: {cell}") for row in body for cell in row[2:] if cell not in proven
    }
    return tuple(head[2:]), behaviours, frozenset(lacking | unproven)


def _cell(language: Language, vector: Vector, failed: Mapping[tuple[str, str], str]) -> str:
    if vector.name in language.lacks:
        return LACKS
    return FAILS if (vector.name, language.name) in failed else HOLDS
