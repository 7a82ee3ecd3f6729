"""The table of languages and behaviours in the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fumehood.agent_check.cases import ProtocolCase
from tests.architecture.project import ROOT
from tests.conformance.agents.languages import Language

PAGE = ROOT / "docs" / "agent_conformance.md"
BEGIN, END = "<!-- table: make conformance -->", "<!-- end of table -->"
HOLDS, FAILS, LACKS = "yes", "**no**", "–"

Shape = tuple[tuple[str, ...], Mapping[str, str], frozenset[tuple[str, str]]]
"""Languages; behaviours by case; unsupported pairs of case and language."""


def table(
    languages: Sequence[Language],
    cases: Sequence[ProtocolCase],
    engines: Sequence[str],
    failed: Mapping[tuple[str, str], str],
) -> str:
    """Return the table.

    Args:
        languages: the columns.
        cases: the rows.
        engines: on which every cell was tried.
        failed: problem by case and language.
    """
    head = [
        "case",
        "behaviour",
        *(f"{language.name}<br>{language.connection}" for language in languages),
    ]
    rows = [[f"`{case.name}`", case.behaviour] for case in cases]
    for row, case in zip(rows, cases, strict=True):
        row += [_cell(language, case, failed) for language in languages]
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
    """Return the page with the new table."""
    before, _, rest = page.partition(BEGIN)
    return before + new_table + rest.partition(END)[2]


def shape_of(languages: Sequence[Language], cases: Sequence[ProtocolCase]) -> Shape:
    """Return the expected shape of the table."""
    return shape_written(table(languages, cases, (), {}))


def shape_written(page: str) -> Shape:
    """Return the shape of a page's table; a failed cell makes it differ."""
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


def _cell(language: Language, case: ProtocolCase, failed: Mapping[tuple[str, str], str]) -> str:
    if case.name in language.lacks:
        return LACKS
    return FAILS if (case.name, language.name) in failed else HOLDS
