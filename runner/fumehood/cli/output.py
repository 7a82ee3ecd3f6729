"""Output of several commands: text tables, and missing extras."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fumehood.core.errors import needs_extra
from fumehood.report.safe_text import one_line
from fumehood.report.text_table import TextTable

PATH = click.Path(path_type=Path)
"""Type of an option or argument that is a path."""
PIPE_COLUMNS = 200
"""Width of text that is written to a file or a pipe."""
CELL_LINES = 3
"""Lines of the longest cell of a table; a table with longer cells is printed as records."""
TEXT_COLUMNS = 16
"""Width of the narrowest column whose cells are wrapped."""
MARKS = {"✓": "green", "✗": "red"}
"""Colours of marks on a terminal."""


def beside(folder: Path, ending: str) -> Path:
    """Return the path beside a folder that has the name of the folder and an ending.

    Args:
        folder: a relative folder gives a relative path, unless it is ``.`` or ends in ``..``.
        ending: such as ``.receipt.json``.
    """
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(f"{named.name}{ending}")


def say(text: str, *, err: bool = False) -> None:
    """Print one line of text; every command prints through this function, except JSON.

    The text may quote names of agents and files; control and format characters are escaped.
    """
    line = one_line(text)
    stream = sys.stderr if err else sys.stdout
    # The variable is a convention: https://no-color.org
    if stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        line = re.sub("[✓✗]", lambda mark: click.style(mark[0], fg=MARKS[mark[0]]), line)
    click.echo(line, err=err)


class _TerminalText(io.StringIO):
    """Text for a pager, which shows it on the terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged() -> Iterator[None]:
    """Show in a pager what is printed inside this context, if it is longer than the terminal."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    with redirect_stdout(_TerminalText()) as text:
        yield
    content = text.getvalue()
    if content.count("\n") < shutil.get_terminal_size().lines:
        click.echo(content, nl=False, color=True)
        return
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(content, color=True)


def print_text(text: str) -> None:
    """Print lines of this program, such as a help text. They quote no names of others."""
    click.echo(text)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2))


def print_tables(*tables: TextTable, mark: str = "") -> None:
    """Print the tables that have rows on standard output, each below its mark and its title."""
    console = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    for table in tables:
        if not table.rows:
            continue
        if mark:
            console.print(f"\n{one_line(mark)}", style="bold red", markup=False, highlight=False)
        if table.title:
            console.print(f"\n{one_line(table.title)}", style="bold", markup=False, highlight=False)
        parts = _fitting(table, console.width)
        for number, part in enumerate(parts):
            if number:
                console.print()
            _print_part(part, console)
        if not parts:
            _print_records(table, console)
        if table.note:
            console.print(one_line(table.note), style="dim", markup=False, highlight=False)


def report_extra() -> AbstractContextManager[None]:
    """Import modules that need the extra ``report`` inside this context.

    Raises:
        InputError: the extra is not installed; the message has the install command.
    """
    return needs_extra("report")


def _fitting(table: TextTable, width: int) -> Sequence[TextTable]:
    """Return tables that fit the width; each has the names of the rows and some of the columns.

    Empty if a cell would need more than ``CELL_LINES`` lines.
    """
    widths = _widths(table)
    names = table.names if sum(widths) + 2 * len(widths) > width else len(widths)
    columns = [list(range(names))]
    for column in range(names, len(widths)):
        is_first = columns[-1] == list(range(names))
        taken = sum(widths[other] + 2 for other in columns[-1])
        if not is_first and taken + widths[column] > width:
            columns.append(list(range(names)))
        columns[-1].append(column)
    if any(not _fits(table, [widths[one] for one in part], part, width) for part in columns):
        return ()
    return [_only(table, part) for part in columns]


def _widths(table: TextTable) -> list[int]:
    """Return the width of each column, if no cell is wrapped."""
    return [
        max(cell_len(one_line(cell)) for cell in column)
        for column in zip(table.header, *table.rows, strict=True)
    ]


def _fits(table: TextTable, widths: Sequence[int], columns: Sequence[int], width: int) -> bool:
    """Return whether the widest column can be wrapped so that the others keep their widths."""
    widest = widths.index(max(widths))
    left = width - sum(widths) - 2 * (len(widths) - 1) + widths[widest]
    if left >= widths[widest]:
        return True
    cells = (Text(one_line(row[columns[widest]])) for row in (table.header, *table.rows))
    console = Console(width=width)
    return left >= TEXT_COLUMNS and all(
        len(cell.wrap(console, left, overflow="fold")) <= CELL_LINES for cell in cells
    )


def _only(table: TextTable, columns: Sequence[int]) -> TextTable:
    last_number = len(table.header) - table.trailing_text
    return replace(
        table,
        header=tuple(table.header[column] for column in columns),
        rows=[tuple(row[column] for column in columns) for row in table.rows],
        trailing_text=sum(column >= last_number for column in columns),
    )


def _print_records(table: TextTable, console: Console) -> None:
    """Print each row as lines: its name, then a title and a value each, without empty values."""
    longest = max(cell_len(one_line(title)) for title in table.header)
    for row in table.rows:
        if row[0]:
            console.print(Text(one_line(row[0]), style="bold"))
        lines = Table.grid(padding=(0, 2), pad_edge=False)
        lines.add_column(min_width=longest + 2, no_wrap=True)
        lines.add_column(overflow="fold")
        for title, cell in zip(table.header[1:], row[1:], strict=True):
            if cell:
                lines.add_row(Text(f"  {one_line(title)}"), _marked(one_line(cell)))
        console.print(lines)


def _marked(text: str) -> Text:
    """Return text with coloured marks. It is not parsed for markup, which names could contain."""
    marked = Text(text)
    for mark, colour in MARKS.items():
        marked.highlight_words([mark], colour)
    return marked


def _print_part(table: TextTable, console: Console) -> None:
    widths = _widths(table)
    if sum(widths) + 2 * (len(widths) - 1) > console.width:
        console.print(_wrapped(table))
        return
    # The layout of ``rich`` takes ten times as long, and a run has thousands of rows.
    lines = [_line(table, row, widths) for row in (table.header, *table.rows)]
    text = _marked("\n".join(lines))
    text.stylize("bold", 0, len(lines[0]))
    console.print(text, soft_wrap=True)


def _line(table: TextTable, row: Sequence[str], widths: Sequence[int]) -> str:
    cells = []
    for position, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = one_line(cell)
        padding = " " * (width - cell_len(text))
        cells.append(text + padding if _is_text(table, position) else padding + text)
    return "  ".join(cells)


def _is_text(table: TextTable, column: int) -> bool:
    """Return whether a column is aligned to the left."""
    return column < table.names or column >= len(table.header) - table.trailing_text


def _wrapped(table: TextTable) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for position, title in enumerate(table.header):
        justify: Literal["left", "right"] = "left" if _is_text(table, position) else "right"
        shown.add_column(Text(one_line(title)), justify=justify, overflow="fold")
    for row in table.rows:
        shown.add_row(*(_marked(one_line(cell)) for cell in row))
    return shown
