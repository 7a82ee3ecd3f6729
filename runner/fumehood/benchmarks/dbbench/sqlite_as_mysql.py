"""SQLite in memory in the part of MySQL, for the world ``sql``."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.benchmarks.dbbench import mysql_words
from fumehood.benchmarks.dbbench.sql_database import cell_of, quoted
from fumehood.benchmarks.dbbench.sqlite_guard import GuardedDatabase, Refused, Row
from fumehood.core.json_values import Json, JsonObject

COLLATION = "mysql_text"


class SqliteAsMySql:
    """Implements the world's ``SqlDatabase``."""

    def __init__(self) -> None:
        self._database = GuardedDatabase()
        self._database.add_collation(COLLATION, mysql_words.compare)
        for name, (arguments, function) in mysql_words.FUNCTIONS.items():
            self._database.add_function(name, arguments, function)

    def make(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> None:
        """Make a table of texts."""
        told = ", ".join(f"{quoted(column)} TEXT COLLATE {COLLATION}" for column in columns)
        marks = ", ".join("?" * len(columns))
        self._database.trusted(f"CREATE TABLE {quoted(name)} ({told})")
        self._database.fill(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)

    def execute(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        """Execute one statement of an agent."""
        if mysql_words.asks_for_tables(statement):
            return [(name,) for name in self._names()], False
        table = mysql_words.table_asked_about(statement)
        if table is not None:
            return [(column, "text", "YES", "", None, "") for column in self._columns(table)], False
        return self._database.untrusted(mysql_words.to_sqlite(statement), rows_max)

    def tables(self) -> list[JsonObject]:
        """Return the tables in the order in which they were made, their rows in that of SQLite."""
        return [self._table(name) for name in self._names()]

    def _names(self) -> list[str]:
        listed = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        return [name for (name,) in self._database.trusted(listed)]

    def _columns(self, table: str) -> list[str]:
        found = self._database.trusted("SELECT name FROM pragma_table_info(?)", (table,))
        if not found:
            raise Refused(f"no such table: {table}")
        return [name for (name,) in found]

    def _table(self, name: str) -> JsonObject:
        columns: list[Json] = [*self._columns(name)]
        found = self._database.trusted(f"SELECT * FROM {quoted(name)}")
        rows: list[Json] = [[cell_of(value) for value in row] for row in found]
        return {"name": name, "columns": columns, "rows": rows}
