"""Tables for people, on a terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from fumehood.report.safe_text import safe
from fumehood.report.text_table import TextTable

WIDE = 200
"""Columns of what is written to a file or a pipe."""


def print_tables(*tables: TextTable) -> None:
    """Print tables on standard output, each under its title; one without rows is left out."""
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    for table in tables:
        if not table.rows:
            continue
        console.print(f"\n{safe(table.title)}", style="bold", markup=False, highlight=False)
        console.print(_table(table))
        if table.note:
            console.print(safe(table.note), style="dim", markup=False, highlight=False)


def _table(table: TextTable) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for at, name in enumerate(table.header):
        shown.add_column(safe(name), justify="left" if at < table.names else "right")
    for row in table.rows:
        shown.add_row(*(safe(cell) for cell in row))
    return shown
