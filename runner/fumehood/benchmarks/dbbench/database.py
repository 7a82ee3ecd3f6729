"""The interface of the SQL databases behind the worlds ``sql`` and ``sql_mariadb``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fumehood.core.json_values import Json, JsonObject

Row = tuple[Any, ...]


class Refused(Exception):
    """The database said no; the message is its own."""


class SqlDatabase(Protocol):
    """One database for one attempt. What it says no to raises ``Refused`` and has changed nothing."""

    def make(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> None:
        """Make a table of texts."""
        ...

    def execute(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        """Execute one statement of an agent; return its rows, and whether anything may have been written."""
        ...

    def tables(self) -> list[JsonObject]:
        """Return all tables, each with ``name``, ``columns`` and ``rows``."""
        ...


def quoted(name: str) -> str:
    """Return a name as MySQL quotes it, which SQLite understands too."""
    return "`" + name.replace("`", "``") + "`"


def cell_of(value: object) -> Json:
    """Return what a cell holds; in a text column that is text, others may hold anything."""
    return value if value is None or isinstance(value, str) else str(value)
