"""Output of several commands: text tables, and missing extras."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fumehood.core.errors import InputError, how_to_install
from fumehood.report.safe_text import one_line
from fumehood.report.text_table import TextTable

PATH = click.Path(path_type=Path)
"""Type of an option or argument that is a path."""
PIPE_COLUMNS = 200
"""Width of text that is written to a file or a pipe."""
REPORT_LIBRARIES = frozenset({"jinja2", "markupsafe", "numpy", "pyarrow", "scipy", "vl_convert"})
"""Libraries of the extra ``report``."""


def say(text: str, *, err: bool = False) -> None:
    """Print one line of text; every command prints through this function, except JSON.

    The text may quote names of agents and files; control and format characters are escaped.
    """
    click.echo(one_line(text), err=err)


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
        console.print(_rich_table(table))
        if table.note:
            console.print(one_line(table.note), style="dim", markup=False, highlight=False)


@contextmanager
def report_extra() -> Iterator[None]:
    """Import modules that need the extra ``report`` inside this context.

    Raises:
        InputError: the extra is not installed; the message has the install command.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in REPORT_LIBRARIES:
            raise
        raise InputError(
            f"this command needs {error.name}; install it with: {how_to_install('report')}"
        ) from None


def _rich_table(table: TextTable) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    last_number = len(table.header) - table.trailing_text
    for position, title in enumerate(table.header):
        is_text = position < table.names or position >= last_number
        # A text is not parsed for markup, which names of agents and tasks could contain.
        shown.add_column(
            Text(one_line(title)), justify="left" if is_text else "right", overflow="fold"
        )
    for row in table.rows:
        shown.add_row(*(Text(one_line(cell)) for cell in row))
    return shown
