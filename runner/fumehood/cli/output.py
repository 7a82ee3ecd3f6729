"""Output of several commands: text tables, damage warnings, and missing extras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Table

from fumehood.core.errors import InputError, how_to_install
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import SEAL
from fumehood.records.verify import verify
from fumehood.report.safe_text import safe
from fumehood.report.text_table import TextTable

PIPE_COLUMNS = 200
"""Width of text that is written to a file or a pipe."""
REPORT_LIBRARIES = frozenset({"jinja2", "markupsafe", "numpy", "pyarrow", "scipy", "vl_convert"})
"""Libraries of the extra ``report``."""


def print_tables(*tables: TextTable) -> None:
    """Print the tables that have rows on standard output, each below its title."""
    console = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    for table in tables:
        if not table.rows:
            continue
        if table.title:
            console.print(f"\n{safe(table.title)}", style="bold", markup=False, highlight=False)
        console.print(_rich_table(table))
        if table.note:
            console.print(safe(table.note), style="dim", markup=False, highlight=False)


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


def warn_of_damage(folder: RunFolder) -> None:
    """Write one line to standard error if the plan or the rows of a signed run were changed.

    Traces are not checked here: hashing all of them takes too long for a look at one.
    """
    if "signing_key" not in folder.manifest() and not (folder.path / SEAL).exists():
        return
    damage = [item for item in verify(folder.path, with_files=False).damage if not item.is_of_crash]
    if damage:
        more = f", and {len(damage) - 1} more" if len(damage) > 1 else ""
        line = f"fumehood: DO NOT TRUST THIS: {damage[0]}{more}; see: fumehood verify {folder.path}"
        click.echo(safe(" ".join(line.split())), err=True)


def _rich_table(table: TextTable) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    last_number = len(table.header) - table.trailing_text
    for position, title in enumerate(table.header):
        is_text = position < table.names or position >= last_number
        shown.add_column(safe(title), justify="left" if is_text else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(safe(cell) for cell in row))
    return shown
