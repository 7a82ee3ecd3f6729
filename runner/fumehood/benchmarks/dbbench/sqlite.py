"""SQLite in memory as a MySQL database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any

from fumehood.benchmarks.dbbench import mysql_dialect
from fumehood.benchmarks.dbbench.database import Refused, Row, cell_of, quoted
from fumehood.core.json_values import Json, JsonObject

COLLATION = "mysql_text"


class SqliteAsMySql:
    """Implements the world's ``SqlDatabase``."""

    def __init__(self) -> None:
        self._database = GuardedDatabase()
        self._database.add_collation(COLLATION, mysql_dialect.compare)
        for name, (arguments, function) in mysql_dialect.FUNCTIONS.items():
            self._database.add_function(name, arguments, function)

    def make(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> None:
        """Make a table of texts."""
        told = ", ".join(f"{quoted(column)} TEXT COLLATE {COLLATION}" for column in columns)
        marks = ", ".join("?" * len(columns))
        self._database.trusted(f"CREATE TABLE {quoted(name)} ({told})")
        self._database.fill(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)

    def execute(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        """Execute one statement of an agent."""
        if mysql_dialect.asks_for_tables(statement):
            return [(name,) for name in self._names()], False
        table = mysql_dialect.table_asked_about(statement)
        if table is not None:
            return [(column, "text", "YES", "", None, "") for column in self._columns(table)], False
        return self._database.untrusted(mysql_dialect.to_sqlite(statement), rows_max)

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


VALUE_BYTES_MAX = 32 << 10
"""Of a value or a row."""
STATEMENT_BYTES_MAX = 64 << 10
STEPS_MAX = 2_000_000
"""Of SQLite's virtual machine, for one statement: a fraction of a second."""
CPU_S_MAX = 5.0
"""Of one statement, in which single steps, such as a search in long texts, take long."""
CALL_STEPS = 50
"""What a call of a function in Python counts for, besides the characters that it is handed."""
PAGES_MAX = 4096
"""Of the database, 4 KiB each."""
HEAP_BYTES_MAX = 256 << 20
"""Of all databases of the process together: sorting needs memory too."""
PATTERN_BYTES_MAX = 256
_STEPS_BETWEEN_LOOKS = 500

READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
WRITING = frozenset(
    {
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_VIEW,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_UPDATE,
    }
)
FORBIDDEN_FUNCTIONS = frozenset(
    {"current_date", "current_time", "current_timestamp", "load_extension", "random", "randomblob"}
)
DATE_FUNCTIONS = ("date", "time", "datetime", "julianday", "strftime", "unixepoch")
_OF_THIS_MACHINE = frozenset({"now", "subsec", "subsecond", "localtime", "utc"})


class GuardedDatabase:
    """One database. Not safe for use from several threads at once."""

    def __init__(self) -> None:
        # Without the cache, because a statement from it would not be shown to the authorizer again.
        self._database = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        for name, value in (
            ("hard_heap_limit", HEAP_BYTES_MAX),
            ("temp_store", 2),
            ("max_page_count", PAGES_MAX),
        ):
            self._database.execute(f"PRAGMA {name} = {value}").close()
        for limit, most in (
            (sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES_MAX),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES_MAX),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        ):
            self._database.setlimit(limit, most)
        self._database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._plain = sqlite3.connect(":memory:", check_same_thread=False)
        for name in DATE_FUNCTIONS:
            self.add_function(name, -1, _dated(name, self._plain))
        self._steps = 0
        self._until_s = 0.0
        self._wrote = False

    def add_function(self, name: str, arguments: int, function: Callable[..., Any]) -> None:
        """Let statements call a function that always gives the same for the same.

        Args:
            name: as statements call it.
            arguments: how many; -1 for any number.
            function: takes and returns what a cell can hold.
        """

        def counted(*values: Any) -> Any:
            return function(*values) if self._may_go_on(CALL_STEPS, *values) else None

        self._database.create_function(name, arguments, counted, deterministic=True)

    def add_collation(self, name: str, compare: Callable[[str, str], int]) -> None:
        """Let columns be compared in a way of their own."""

        def counted(one: str, other: str) -> int:
            return compare(one, other) if self._may_go_on(1, one, other) else 0

        self._database.create_collation(name, counted)

    def trusted(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Execute a statement of our own and return all rows.

        Raises:
            Refused: it cannot be executed.
        """
        try:
            return self._database.execute(statement, values).fetchall()
        except (sqlite3.Error, ValueError, MemoryError) as error:
            raise Refused(str(error)) from None

    def fill(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement of our own once for every row.

        Raises:
            Refused: it cannot be executed.
        """
        try:
            self._database.executemany(statement, rows)
        except (sqlite3.Error, ValueError, MemoryError) as error:
            raise Refused(str(error)) from None

    def untrusted(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        """Execute one statement of somebody else's.

        Args:
            statement: as it came.
            rows_max: so many rows are returned at most.

        Returns:
            The rows, and whether anything may have been written.

        Raises:
            Refused: it cannot or must not be executed, and has changed nothing.
        """
        self._steps, self._wrote, self._until_s = 0, False, time.thread_time() + CPU_S_MAX
        self._database.set_authorizer(self._authorize)
        self._database.set_progress_handler(self._look, _STEPS_BETWEEN_LOOKS)
        try:
            cursor = self._database.execute(statement)
            rows = cursor.fetchmany(rows_max)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise Refused(str(error)) from None
        except MemoryError:
            raise Refused("out of memory") from None
        finally:
            self._database.set_progress_handler(None, 0)
            self._database.set_authorizer(None)
        return rows, self._wrote

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION and str(second).lower() in FORBIDDEN_FUNCTIONS:
            return sqlite3.SQLITE_DENY
        self._wrote |= action in WRITING
        return sqlite3.SQLITE_OK if action in READING | WRITING else sqlite3.SQLITE_DENY

    def _look(self) -> bool:
        self._steps += _STEPS_BETWEEN_LOOKS
        return self._steps > STEPS_MAX or time.thread_time() > self._until_s

    def _may_go_on(self, steps: int, *values: Any) -> bool:
        """Count what a callback costs; the statement that has used up its steps ends here."""
        self._steps += steps + sum(len(value) for value in values if isinstance(value, str | bytes))
        if self._steps <= STEPS_MAX:
            return True
        self._database.interrupt()
        return False


def _dated(name: str, plain: sqlite3.Connection) -> Callable[..., Any]:
    """Return one of SQLite's date functions, taken from another database, without what depends on now."""

    def dated(*values: Any) -> Any:
        given = values[1:] if name == "strftime" else values
        if not given or any(str(value).strip().lower() in _OF_THIS_MACHINE for value in given):
            raise ValueError("there is no clock here")
        marks = ", ".join("?" * len(values))
        return plain.execute(f"SELECT {name}({marks})", values).fetchone()[0]

    return dated
