"""Tables as files: CSV for anything, Parquet with types. Text is made harmless in both."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pyarrow  # type: ignore[import-untyped]
from pyarrow import parquet

from fumehood.report.safe_text import safe
from fumehood.report.tables.table import Cell, Kind, Table

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for something to carry out."""

_TYPES = {
    Kind.TEXT: pyarrow.string(),
    Kind.INTEGER: pyarrow.int64(),
    Kind.NUMBER: pyarrow.float64(),
    Kind.TRUTH: pyarrow.bool_(),
}


def csv_text(table: Table) -> str:
    """Return a table as CSV (RFC 4180, but with plain line feeds), names of the columns first.

    A text that a spreadsheet would carry out gets an apostrophe in front; Parquet holds it as it is.
    """
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows([[_plain(cell) for cell in row] for row in table.rows])
    return written.getvalue()


def write_csv(table: Table, folder: Path) -> Path:
    """Write ``<name>.csv`` and return where."""
    path = folder / f"{table.name}.csv"
    path.write_text(csv_text(table), encoding="utf-8")
    return path


def write_parquet(table: Table, folder: Path) -> Path:
    """Write ``<name>.parquet`` and return where."""
    path = folder / f"{table.name}.parquet"
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    arrays = [
        pyarrow.array([_harmless(value) for value in values], type=_TYPES[column.kind])
        for column, values in zip(table.columns, columns, strict=True)
    ]
    parquet.write_table(
        pyarrow.table(arrays, names=[column.name for column in table.columns]), path
    )
    return path


def _harmless(cell: Cell) -> Cell:
    return safe(cell) if isinstance(cell, str) else cell


def _plain(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    cell = _harmless(cell)
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
