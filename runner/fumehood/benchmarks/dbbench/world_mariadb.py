"""The world sql on MariaDB."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fumehood.benchmarks.dbbench.database import Refused, Row, cell_of, quoted
from fumehood.benchmarks.dbbench.mariadb_server import MariaDbServer, mariadbd, server
from fumehood.benchmarks.dbbench.world import Sql
from fumehood.core.errors import InfraError
from fumehood.core.json_values import Json, JsonObject


def preload() -> None:
    """See that there is a server to start, and import its client, before a process may no longer read it."""
    mariadbd()
    import_module("pymysql.cursors")


class MariaDbSql(Sql):
    """State: as that of ``sql``; tables of an agent's own come last, by name."""

    toolset_id = "sql_mariadb_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``, in a new database.

        Raises:
            SpecError: ``tables`` is there and is no list of tables.
            InputError: MariaDB is not installed.
            InfraError: it does not start.
        """
        preload()
        super().__init__(state, MariaDbAttempt(server()))


MAY = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW"
)
"""Without what would stay or block: routines, triggers, events, locks."""
READS = ("select", "show", "describe", "desc", "explain", "with", "values", "(")
ROWS_KEPT_MAX = 10_000
"""Of a table, in the state."""
SHOWN_NAME = "task"
"""What the database is called in whatever an agent sees, so that no trace tells how many came before."""
_UNNAMEABLE = frozenset({1059, 1060, 1103, 1166})
"""Codes of names that are too long, twice there or empty, as one of dbbench's is: SQLite takes them."""
_GONE = frozenset({2006, 2013})
"""Codes of a connection that broke off."""


class MariaDbAttempt:
    """Implements the worlds' ``SqlDatabase``. Not safe for use from several threads at once."""

    def __init__(self, server: MariaDbServer) -> None:
        """Make an empty database.

        Raises:
            InfraError: the server does not.
        """
        self._server = server
        self._name = server.begin(MAY)
        weakref.finalize(self, server.over.append, self._name)
        self._given: list[str] = []

    def make(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> None:
        """Make a table of texts. One with a name that MariaDB does not take is not there."""
        told = ", ".join(f"{quoted(column)} TEXT" for column in columns)
        marks = ", ".join(["%s"] * len(columns))
        table = quoted(name).replace("%", "%%")
        try:
            with self._server.connection(self._name).cursor() as cursor:
                cursor.execute(f"CREATE TABLE {quoted(name)} ({told})")
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        except import_module("pymysql").err.Error as error:
            if error.args[0] in _UNNAMEABLE:
                return
            raise Refused(self._shown(error)) from None
        self._given.append(name)

    def execute(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        """Execute one statement of an agent, as a transaction of its own."""
        pymysql = import_module("pymysql")
        connection = self._server.connection(self._name)
        cursor = connection.cursor(pymysql.cursors.SSCursor)
        try:
            cursor.execute(statement)
            rows = list(cursor.fetchmany(rows_max + 1)) if cursor.description else []
            if len(rows) > rows_max:
                self._leave(cursor)  # The rest is not read, however long it is.
            else:
                cursor.close()
                connection.commit()
        except (pymysql.err.Error, ValueError) as error:
            if not connection.open or error.args[0] in _GONE:
                self._leave(cursor)
                raise Refused("the statement took too long, or broke the connection") from None
            raise Refused(self._shown(error)) from None
        shown = [tuple(map(self._cell, row)) for row in rows[:rows_max]]
        return shown, not statement.lstrip().lower().startswith(READS)

    def tables(self) -> list[JsonObject]:
        """Return the tables: those that were given first, then the agent's own by name."""
        listed = self._server.trusted(
            # An agent may have dropped all of it at once.
            f"CREATE DATABASE IF NOT EXISTS {self._name} CHARACTER SET utf8mb4",
            f"SHOW FULL TABLES FROM {self._name} WHERE Table_type = 'BASE TABLE'",
        )
        names = {str(row[0]) for row in listed}
        given = [name for name in self._given if name in names]
        return [self._table(name) for name in (*given, *sorted(names.difference(given)))]

    def _table(self, name: str) -> JsonObject:
        try:
            return self._read(name)
        except InfraError:
            self._server.trusted("DO 0")  # Says no where the server is what failed.
            # Of an agent's making: a merge of tables that are not there, say.
            return {"name": name, "columns": [], "rows": []}

    def _read(self, name: str) -> JsonObject:
        where = f"{self._name}.{quoted(name)}"
        columns: list[Json] = [
            str(row[0]) for row in self._server.trusted(f"SHOW COLUMNS FROM {where}")
        ]
        found = self._server.trusted(f"SELECT * FROM {where} LIMIT {ROWS_KEPT_MAX}")
        rows: list[Json] = [[cell_of(value) for value in row] for row in found]
        return {"name": name, "columns": columns, "rows": rows}

    def _leave(self, cursor: Any) -> None:
        """Leave a connection of which nobody knows what it does."""
        if cursor._result is not None:
            cursor._result.unbuffered_active = (
                False  # Else PyMySQL reads all that is left, to its end.
            )
        self._server.leave(self._name)

    def _cell(self, value: Any) -> Any:
        return value.replace(self._name, SHOWN_NAME) if isinstance(value, str) else value

    def _shown(self, error: Exception) -> str:
        return ": ".join(map(str, error.args)).replace(self._name, SHOWN_NAME)
