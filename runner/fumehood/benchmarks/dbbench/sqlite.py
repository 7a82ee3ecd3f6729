"""SQLite in memory as a MySQL database, safe for untrusted statements.

An authorizer limits what a statement may do, and SQLite limits the size of values. Steps of
SQLite's virtual machine are counted, so that a statement always ends at the same step. Only the
work inside a single step has a limit of processor time instead. Random numbers and the clock are
unavailable, so that runs are reproducible.
"""

from __future__ import annotations

import sqlite3
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fumehood.benchmarks.dbbench.database import Rejected, Row, cell_to_json, quote_name
from fumehood.core.errors import InfraError
from fumehood.core.json_values import Json, JsonObject
from fumehood.third_party.process import checker

COLLATION = "mysql_text"
VALUE_BYTES_MAX = 32 << 10
"""Limit of a value and of a row."""
STATEMENT_BYTES_MAX = 64 << 10
STEPS_MAX = 2_000_000
"""Limit of SQLite's virtual machine per statement, a fraction of a second."""
CPU_S_MAX = 5.0
"""Limit per statement; single steps, such as a search in long texts, may take long."""
CALL_STEPS = 50
"""Steps that a call of a Python function counts, in addition to the characters of its arguments."""
PAGES_MAX = 4096
"""Limit of the database, in pages of 4 KiB."""
HEAP_BYTES_MAX = 256 << 20
"""Limit of all databases of the process together."""
PATTERN_BYTES_MAX = 256
_STEPS_PER_CHECK = 500

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
_CLOCK_ARGUMENTS = frozenset({"now", "subsec", "subsecond", "localtime", "utc"})


class SqliteAsMySql:
    """Implements ``SqlDatabase`` with MySQL's collation and functions, over a
    ``GuardedDatabase``."""

    def __init__(self) -> None:
        self._database = GuardedDatabase()
        self._database.add_collation(COLLATION, compare)
        for name, (arguments, function) in FUNCTIONS.items():
            self._database.add_function(name, arguments, function)

    def create_table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]
    ) -> None:
        """Create a table with text columns."""
        definitions = ", ".join(f"{quote_name(name)} TEXT COLLATE {COLLATION}" for name in columns)
        placeholders = ", ".join("?" * len(columns))
        self._database.trusted(f"CREATE TABLE {quote_name(name)} ({definitions})")
        self._database.fill(f"INSERT INTO {quote_name(name)} VALUES ({placeholders})", rows)

    def execute(self, statement: str, rows_max: int) -> tuple[str, bool]:
        """Translate and execute a statement of an agent."""
        rows, may_have_written = self._execute(statement, rows_max)
        return str(rows), may_have_written

    def _execute(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        if len(statement) > STATEMENT_BYTES_MAX:
            raise Rejected(f"the statement is longer than {STATEMENT_BYTES_MAX} bytes")
        try:
            translation = checker("dbbench").ask({"statement": statement})
        except InfraError:
            raise Rejected("the statement is too complex") from None
        match translation:
            case {"tables": _}:
                return [(name,) for name in self._table_names()], False
            case {"columns": str(table)}:
                columns = self._columns(table)
                return [(column, "text", "YES", "", None, "") for column in columns], False
            case {"sql": str(sql)}:
                return self._database.untrusted(sql, rows_max)
        raise Rejected(str(translation.get("rejected")))

    def tables(self) -> list[JsonObject]:
        """Return the tables in order of creation, with their rows in SQLite's order."""
        return [self._table(name) for name in self._table_names()]

    def _table_names(self) -> list[str]:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        return [name for (name,) in self._database.trusted(query)]

    def _columns(self, table: str) -> list[str]:
        rows = self._database.trusted("SELECT name FROM pragma_table_info(?)", (table,))
        if not rows:
            raise Rejected(f"no such table: {table}")
        return [name for (name,) in rows]

    def _table(self, name: str) -> JsonObject:
        columns: list[Json] = [*self._columns(name)]
        rows = self._database.trusted(f"SELECT * FROM {quote_name(name)}")
        cells: list[Json] = [[cell_to_json(value) for value in row] for row in rows]
        return {"name": name, "columns": columns, "rows": cells}


class GuardedDatabase:
    """A database that limits untrusted statements. Use it from one thread at a time."""

    def __init__(self) -> None:
        # The authorizer does not see cached statements, so there is no cache.
        self._database = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        for name, value in (
            ("hard_heap_limit", HEAP_BYTES_MAX),
            ("temp_store", 2),
            ("max_page_count", PAGES_MAX),
        ):
            self._database.execute(f"PRAGMA {name} = {value}").close()
        for limit, maximum in (
            (sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES_MAX),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES_MAX),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        ):
            self._database.setlimit(limit, maximum)
        self._database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._date_database = sqlite3.connect(":memory:", check_same_thread=False)
        for name in DATE_FUNCTIONS:
            self.add_function(name, -1, _date_function(name, self._date_database))
        self._steps = 0
        self._deadline_cpu_s = 0.0
        self._wrote = False

    def add_function(self, name: str, arguments: int, function: Callable[..., Any]) -> None:
        """Add a deterministic function to SQL.

        Args:
            name: Name in SQL.
            arguments: Number of arguments; -1 for any number.
            function: Takes and returns values of cells.
        """

        def counted(*values: Any) -> Any:
            return function(*values) if self._count_call(CALL_STEPS, *values) else None

        self._database.create_function(name, arguments, counted, deterministic=True)

    def add_collation(self, name: str, compare: Callable[[str, str], int]) -> None:
        """Add a collation to SQL."""

        def counted(first: str, second: str) -> int:
            return compare(first, second) if self._count_call(1, first, second) else 0

        self._database.create_collation(name, counted)

    def trusted(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Execute a statement of this project and return all rows.

        Raises:
            Rejected: SQLite rejects the statement.
        """
        try:
            return self._database.execute(statement, values).fetchall()
        except (sqlite3.Error, ValueError, MemoryError) as error:
            raise Rejected(str(error)) from None

    def fill(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement of this project once per row.

        Raises:
            Rejected: SQLite rejects the statement.
        """
        try:
            self._database.executemany(statement, rows)
        except (sqlite3.Error, ValueError, MemoryError) as error:
            raise Rejected(str(error)) from None

    def untrusted(self, statement: str, rows_max: int) -> tuple[list[Row], bool]:
        """Execute one statement of an agent.

        Args:
            statement: In SQLite's dialect.
            rows_max: Maximum number of returned rows.

        Returns:
            The rows, and whether the statement may have changed data.

        Raises:
            Rejected: The statement is invalid, forbidden or exceeds a limit. It has changed
                nothing.
        """
        self._steps, self._wrote = 0, False
        self._deadline_cpu_s = time.thread_time() + CPU_S_MAX
        self._database.set_authorizer(self._authorize)
        self._database.set_progress_handler(self._is_over_limit, _STEPS_PER_CHECK)
        try:
            cursor = self._database.execute(statement)
            rows = cursor.fetchmany(rows_max)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise Rejected(str(error)) from None
        except MemoryError:
            raise Rejected("out of memory") from None
        finally:
            self._database.set_progress_handler(None, 0)
            self._database.set_authorizer(None)
        return rows, self._wrote

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION and str(second).lower() in FORBIDDEN_FUNCTIONS:
            return sqlite3.SQLITE_DENY
        self._wrote |= action in WRITING
        return sqlite3.SQLITE_OK if action in READING | WRITING else sqlite3.SQLITE_DENY

    def _is_over_limit(self) -> bool:
        self._steps += _STEPS_PER_CHECK
        return self._steps > STEPS_MAX or time.thread_time() > self._deadline_cpu_s

    def _count_call(self, steps: int, *values: Any) -> bool:
        """Count the steps of a callback; returns False and ends the statement above the limit."""
        self._steps += steps + sum(len(value) for value in values if isinstance(value, str | bytes))
        if self._steps <= STEPS_MAX:
            return True
        self._database.interrupt()
        return False


def _date_function(name: str, database: sqlite3.Connection) -> Callable[..., Any]:
    """Return a date function of SQLite that rejects arguments which read the clock."""

    def without_clock(*values: Any) -> Any:
        dates = values[1:] if name == "strftime" else values
        if not dates or any(str(value).strip().lower() in _CLOCK_ARGUMENTS for value in dates):
            raise ValueError("the current time is not available")
        placeholders = ", ".join("?" * len(values))
        return database.execute(f"SELECT {name}({placeholders})", values).fetchone()[0]

    return without_clock


def compare(first: str, second: str) -> int:
    """Compare as MySQL's default collations do: without case, accents and trailing blanks."""
    left, right = _fold(first), _fold(second)
    return (left > right) - (left < right)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower().rstrip(" ")
    parts = unicodedata.normalize("NFD", text.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part)).rstrip(" ")


def _null_safe(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is NULL if one of its arguments is NULL, as most of MySQL's are."""
    return lambda *values: None if None in values else function(*values)


def _concat_ws(separator: Any, *values: Any) -> str | None:
    texts = [str(value) for value in values if value is not None]
    return None if separator is None else str(separator).join(texts)


def _right(value: Any, length: Any) -> str:
    text = str(value)
    return text[max(len(text) - max(int(length), 0), 0) :]


def _locate(part: Any, whole: Any, start: Any = 1) -> int:
    offset = int(start) - 1
    return str(whole).lower().find(str(part).lower(), offset) + 1 if offset >= 0 else 0


def _substring_index(value: Any, separator: Any, count: Any) -> str:
    text, delimiter, number = str(value), str(separator), int(count)
    if not delimiter or number == 0:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:number] if number > 0 else parts[number:])


def _truncate(value: Any, digits: Any) -> float:
    factor = 10.0 ** max(min(int(digits), 30), -30)
    return int(float(value) * factor) / factor


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "char_length": (1, _null_safe(lambda value: len(str(value)))),
    "concat_ws": (-1, _concat_ws),
    "day": (1, _null_safe(lambda date: int(str(date)[8:10]))),
    "locate": (-1, _null_safe(_locate)),
    "lower": (1, _null_safe(lambda value: str(value).lower())),
    "month": (1, _null_safe(lambda date: int(str(date)[5:7]))),
    "mysql_left": (2, _null_safe(lambda value, length: str(value)[: max(int(length), 0)])),
    "mysql_right": (2, _null_safe(_right)),
    "mysql_truncate": (2, _null_safe(_truncate)),
    "octet_length": (1, _null_safe(lambda value: len(str(value).encode("utf-8", "replace")))),
    "substring_index": (3, _null_safe(_substring_index)),
    "upper": (1, _null_safe(lambda value: str(value).upper())),
    "year": (1, _null_safe(lambda date: int(str(date)[:4]))),
}
"""Name → number of arguments and implementation."""
