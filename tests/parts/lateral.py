"""Writes lateral thinking puzzles of this project as a spreadsheet in AgentBench's format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape
from zipfile import ZipFile

HEADER = ("story", "answer", "Keys 1", "Keys 2")
ROWS = (
    (
        "A baker opens his shop at noon and no one buys bread. He smiles.",
        "The baker teaches apprentices on Sundays. The bread is their homework.",
        "1. A baker opens his shop at noon.\n2. No one buys bread.",
        "1. The shop is closed for customers on Sundays.\n2. Apprentices bake bread as homework.",
    ),
    (
        "A captain throws his best map into the sea. The sailors are saved.",
        "Pirates follow the ship for the map. They stop to fish it out.",
        "- A captain throws a map into the sea.",
        "- Pirates chase the ship because of the map.\n- The pirates stop to fetch the map.",
    ),
    (
        "Every evening a woman counts her steps to the lighthouse & back.",
        "The lighthouse keeper is her blind brother. She measures a rope for him.",
        "A woman counts steps to a lighthouse.",
        "The lighthouse keeper is blind.\nThe woman measures a rope for her brother.",
    ),
)
_WORKBOOK = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def write_spreadsheet(
    path: Path, rows: Iterable[Sequence[str]] = ROWS, *, shared: bool = True
) -> Path:
    """Write rows below a header; texts are shared strings or are in their cells."""
    texts: list[str] = []

    def cell(name: str, text: str) -> str:
        if not shared:
            return f'<c r="{name}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'
        texts.append(f"<si><t>{escape(text)}</t></si>")
        return f'<c r="{name}" t="s"><v>{len(texts) - 1}</v></c>'

    lines = [
        f'<row r="{at}">'
        + "".join(cell(f"{column}{at}", text) for column, text in zip("ABCD", row, strict=False))
        + "</row>"
        for at, row in enumerate([HEADER, *rows], start=1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as archive:
        sheet = (
            f'<worksheet xmlns="{_WORKBOOK}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
        )
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
        if shared:
            archive.writestr(
                "xl/sharedStrings.xml", f'<sst xmlns="{_WORKBOOK}">{"".join(texts)}</sst>'
            )
    return path


def write_checkout(folder: Path) -> Path:
    """Write the part of a checkout of AgentBench that contains the puzzles."""
    for split in ("standard", "dev"):
        write_spreadsheet(folder / "data" / "lateralthinkingpuzzle" / f"{split}.xlsx")
    return folder
