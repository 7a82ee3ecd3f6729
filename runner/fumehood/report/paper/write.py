"""A reproduction as files: two tables, two figures, their data, and a page on what to make of it."""

from __future__ import annotations

from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.report.findings import Findings
from fumehood.report.headline import why_no_headline
from fumehood.report.paper.figures import figures
from fumehood.report.paper.provenance import Data, statements
from fumehood.report.paper.tables import as_data, as_reading, table_1, table_2
from fumehood.report.pictures.picture import WIDE_PX, draw
from fumehood.report.pictures.theme import in_light
from fumehood.report.tables.files import write_csv
from fumehood.report.tables.machine_tables import budgeted_table
from fumehood.report.tables.reading import ReadingTable, markdown_table, markdown_text


def reading_tables(findings: Findings) -> list[ReadingTable]:
    """Return both tables for people."""
    return [
        as_reading("Table I: all tasks", table_1(findings)),
        as_reading("Table II: by planned fault", table_2(findings)),
    ]


def write_reproduction(findings: Findings, data: Data, run: str, out: Path) -> list[Path]:
    """Write everything into ``out`` and return what was written, the page first.

    Args:
        findings: of the run.
        data: where its tasks came from.
        run: how the page names the run folder.
        out: an existing folder.

    Raises:
        InputError: it cannot be written.
    """
    pictures = figures(findings)
    try:
        tables = [
            write_csv(as_data("table_1", table_1(findings)), out),
            write_csv(as_data("table_2", table_2(findings)), out),
            write_csv(budgeted_table(findings), out),
        ]
        drawn = []
        for picture in pictures:
            drawn.append(out / f"{picture.name}.svg")
            drawn[-1].write_text(in_light(draw(picture, WIDE_PX)), encoding="utf-8")
        page = out / "reproduction.md"
        page.write_text(_page(findings, data, run, [path.name for path in drawn]), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}") from None
    return [page, *tables, *drawn]


def _page(findings: Findings, data: Data, run: str, drawn: list[str]) -> str:
    parts = ["# ToolMisuseBench, reproduced\n", "## Before comparing\n"]
    parts.append("\n".join(f"* {statement}" for statement in statements(data)) + "\n")
    for found in findings.subjects:
        blocked = why_no_headline(found.whole.counts)
        if blocked is not None:
            parts.append(f"**{markdown_text(found.subject.label)}**: {markdown_text(blocked)}\n")
    parts.append("## Tables\n")
    parts += [markdown_table(table) for table in reading_tables(findings)]
    parts.append("## Figures\n")
    for name, picture in zip(drawn, figures(findings), strict=True):
        parts.append(
            f"![{markdown_text(picture.title)}]({name})\n\n{markdown_text(picture.caption)}\n"
        )
    parts.append(
        "The data of the figures are in `table_2.csv` and `budgeted_success.csv`. Every number follows from "
        f"the run folder `{run}`; `fumehood score {run} --json` gives the same means under `agents`.\n"
    )
    return "\n".join(parts)
