"""A table for programs: typed columns, one number a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

Cell = str | int | float | bool | None


class Kind(Enum):
    """What a column holds; any cell may also be None."""

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
class Table:
    """Rows of one kind."""

    name: str
    """Of the file that holds it, without its ending."""
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]


def texts(*names: str) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple(Column(name) for name in names)


def integers(*names: str) -> tuple[Column, ...]:
    """Return columns of whole numbers."""
    return tuple(Column(name, Kind.INTEGER) for name in names)


def numbers(*names: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(name, Kind.NUMBER) for name in names)
