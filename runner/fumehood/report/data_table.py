"""A table of typed values, written as CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from io import StringIO
from pathlib import Path

import pyarrow  # type: ignore[import-untyped]
from pyarrow import parquet

from fumehood.records.files import open_export, write_export
from fumehood.report.safe_text import safe

Cell = str | int | float | bool | None
Row = tuple[Cell, ...]

ALL = "all"
"""Name of the group that holds all episodes."""


class Kind(Enum):
    """The type of a column. A cell may also be None."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    kind: Kind = Kind.TEXT


@dataclass(frozen=True, slots=True)
class DataTable:
    """Typed columns and rows."""

    name: str
    """File name without its suffix."""
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]

    def records(self) -> list[dict[str, Cell]]:
        """Return every row as column → cell."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


def texts(*names: str) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple(Column(name) for name in names)


def integers(*names: str) -> tuple[Column, ...]:
    """Return columns of whole numbers."""
    return tuple(Column(name, Kind.INTEGER) for name in names)


def numbers(*names: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(name, Kind.NUMBER) for name in names)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet executes text that begins with one of these."""

_TYPES = {
    Kind.TEXT: pyarrow.string(),
    Kind.INTEGER: pyarrow.int64(),
    Kind.NUMBER: pyarrow.float64(),
    Kind.TRUTH: pyarrow.bool_(),
}


def csv_text(table: DataTable) -> str:
    """Return a table as CSV (RFC 4180 with line feeds), with a header row.

    Text that a spreadsheet would execute gets a leading apostrophe; Parquet has the original text.
    """
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows([[_plain(cell) for cell in row] for row in table.rows])
    return written.getvalue()


def write_csv(table: DataTable, folder: Path) -> Path:
    """Write ``<name>.csv`` and return its path."""
    path = folder / f"{table.name}.csv"
    write_export(path, csv_text(table).encode())
    return path


def write_parquet(table: DataTable, folder: Path) -> Path:
    """Write ``<name>.parquet`` and return its path."""
    path = folder / f"{table.name}.parquet"
    with open(path, "wb", opener=open_export) as file:
        parquet.write_table(arrow_table(table), file)
    return path


def arrow_table(table: DataTable) -> pyarrow.Table:
    """Return the table as an Arrow table."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    arrays = [
        pyarrow.array([_harmless(value) for value in values], type=_TYPES[column.kind])
        for column, values in zip(table.columns, columns, strict=True)
    ]
    return pyarrow.table(arrays, names=[column.name for column in table.columns])


def _harmless(cell: Cell) -> Cell:
    return safe(cell) if isinstance(cell, str) else cell


def _plain(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    cell = _harmless(cell)
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
