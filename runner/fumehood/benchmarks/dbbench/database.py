"""The interface of the SQL databases behind the worlds ``sql`` and ``sql_mariadb``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fumehood.core.json_values import Json, JsonObject

Row = tuple[Any, ...]


class Rejected(Exception):
    """The database rejected a statement. The message is the database's own."""


class SqlDatabase(Protocol):
    """The database of one attempt. A statement that raises ``Rejected`` has changed nothing."""

    def create_table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]
    ) -> None:
        """Create a table with text columns."""
        ...

    def execute(self, statement: str, rows_max: int) -> tuple[str, bool]:
        """Execute a statement of an agent.

        Args:
            statement: One statement in MySQL's dialect.
            rows_max: Maximum number of returned rows.

        Returns:
            The rows as Python's text, and whether the statement may have changed data.
        """
        ...

    def tables(self) -> list[JsonObject]:
        """Return all tables, each with ``name``, ``columns`` and ``rows``."""
        ...


def quote_name(name: str) -> str:
    """Return a name in MySQL's quotes, which SQLite accepts as well."""
    return "`" + name.replace("`", "``") + "`"


def cell_to_json(value: object) -> Json:
    """Return a cell as text or None; columns that an agent adds may have other types."""
    return value if value is None or isinstance(value, str) else str(value)
