"""The world ``sql`` on a separate MariaDB server.

State and tool equal those of ``sql``. Clock and random numbers are fixed, except in functions such
as ``SYSDATE`` and ``UUID``.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fumehood.benchmarks.dbbench.database import Rejected, cell_to_json, quote_name
from fumehood.benchmarks.dbbench.mariadb_server import (
    DATABASE,
    STRICT,
    LargeResult,
    MariaDbServer,
    mariadbd,
    read_rows,
)
from fumehood.benchmarks.dbbench.world import RESULT_CHARS_MAX, Sql
from fumehood.benchmarks.dbbench.world import ROWS_MAX as SHOWN_ROWS_MAX
from fumehood.benchmarks.shared.private_server import QUESTION_BYTES_MAX, RESULT_BYTES_MAX
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object, json_bytes
from fumehood.third_party.outside import JsonOutside, Outside
from fumehood.third_party.process import QuestionFailed, are_routed, checker

if TYPE_CHECKING:
    from pymysql.connections import Connection

READING_KEYWORDS = ("select", "show", "describe", "desc", "explain", "with", "values", "(")
WRITING_KEYWORDS = (
    *("insert", "update", "delete", "replace", "truncate", "create", "drop", "alter", "rename"),
    "use",
)
"""Other statements could change the limits of the connection, or hide what they execute."""
FILE_BYTES_MAX = 64 << 20
"""Size of the database of an attempt, on the disk of this machine."""
_COMMENTS = re.compile(r"(?:\s+|--\s[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/)+", re.DOTALL)
ROWS_MAX = 10_000
"""Limit of a table's rows in the state."""
STATE_TIMEOUT_S = 10.0
"""Time to read all tables. An agent can define columns whose calculation does not end."""
_TABLE_TIMEOUT_S = 5
_INVALID_NAME_CODES = frozenset({1059, 1060, 1103, 1166})
"""A name is too long, duplicate or empty. SQLite accepts such names, and one record of dbbench has
one."""
_CONNECTION_LOST_CODES = frozenset({2006, 2013})


def preload() -> None:
    """Check that the server is installed and import its client while this process can read them."""
    mariadbd()
    import_module("pymysql.cursors")


class MariaDbSql(Sql):
    """A database of MariaDB. State as in ``Sql``; tables that an agent adds come last, by name.

    ``strict`` (default true) selects MySQL 8's default ``sql_mode`` instead of an empty one.
    """

    toolset_id = "sql_mariadb_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state`` in a new database.

        Raises:
            SpecError: ``tables`` is invalid.
            InputError: MariaDB is not installed.
            InfraError: MariaDB does not start.
        """
        super().__init__(state, RemoteDatabase() if are_routed() else _new_database(state))


def _new_database(state: JsonObject) -> MariaDbAttempt:
    is_strict = state.get("strict", True)
    if not isinstance(is_strict, bool):
        raise SpecError("initial_state.strict", "must be true or false")
    preload()
    return MariaDbAttempt(MariaDbServer(STRICT if is_strict else ""))


def open_outside(spec: EpisodeSpec) -> Outside:
    """Open the database of an episode, with the tables of its task."""
    state = copy_object(spec.initial_state)
    database = _new_database(state)
    try:
        Sql(state, database)
    except SpecError:
        database.stop()
        raise

    def answer(question: Any) -> JsonObject:
        match question:
            case {"statement": str(statement)}:
                try:
                    text, may_have_written = database.execute(statement, SHOWN_ROWS_MAX)
                except Rejected as rejection:
                    return {"rejected": str(rejection)[: RESULT_CHARS_MAX + 1]}
                # Longer texts are cut and marked.
                return {"text": text[: RESULT_CHARS_MAX + 1], "wrote": may_have_written}
        return {"tables": [*database.tables()]}

    return JsonOutside(
        answer,
        question_bytes_max=QUESTION_BYTES_MAX,
        # A statement of the agent may have ended the server.
        is_down=lambda: False,
        close=database.stop,
    )


class RemoteDatabase:
    """Implements ``SqlDatabase`` in the process of an episode."""

    def __init__(self) -> None:
        self._asker = checker("mariadb")

    def create_table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]
    ) -> None:
        """Do nothing: the service has created the tables of the task."""

    def execute(self, statement: str, rows_max: int) -> tuple[str, bool]:
        """Execute one statement of an agent."""
        try:
            answer: Any = self._asker.ask({"statement": statement})
        except QuestionFailed as failed:
            raise Rejected(str(failed)) from None
        if "rejected" in answer:
            raise Rejected(answer["rejected"])
        return answer["text"], answer["wrote"]

    def tables(self) -> list[JsonObject]:
        """Return all tables."""
        answer: Any = self._asker.ask({})
        tables: list[JsonObject] = answer["tables"]
        return tables


class MariaDbAttempt:
    """Implements ``SqlDatabase`` with a server. Use it from one thread at a time."""

    def __init__(self, server: MariaDbServer) -> None:
        """Use the empty database of a server, which ends with this object."""
        self._server = server
        self.stop = weakref.finalize(self, server.stop)
        self._initial_tables: list[str] = []

    def create_table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]
    ) -> None:
        """Create a table with text columns. A table with a name that MariaDB rejects is omitted."""
        definitions = ", ".join(f"{quote_name(column)} TEXT" for column in columns)
        placeholders = ", ".join(["%s"] * len(columns))
        table = quote_name(name).replace("%", "%%")
        try:
            with self._server.session().cursor() as cursor:
                cursor.execute(f"CREATE TABLE {quote_name(name)} ({definitions})")
                cursor.executemany(f"INSERT INTO {table} VALUES ({placeholders})", rows)
        except import_module("pymysql").err.Error as error:
            if error.args[0] in _INVALID_NAME_CODES:
                return
            raise Rejected(_message(error)) from None
        self._initial_tables.append(name)

    def execute(self, statement: str, rows_max: int) -> tuple[str, bool]:
        """Execute one statement of an agent as a transaction."""
        is_reading = _is_reading(statement)
        pymysql = import_module("pymysql")
        session = self._session()
        cursor = session.cursor(pymysql.cursors.SSCursor)
        rows: list[tuple[Any, ...]] = []
        try:
            cursor.execute(statement)
            for row in read_rows(cursor, rows_max, RESULT_BYTES_MAX):
                rows.append(row)  # A larger result keeps these rows.
            session.commit()
        except LargeResult:
            self._server.end_session(cursor)
        except (pymysql.err.Error, ValueError) as error:
            if not session.open or error.args[0] in _CONNECTION_LOST_CODES:
                self._server.end_session(cursor)
                raise Rejected("the statement took too long or broke the connection") from None
            raise Rejected(_message(error)) from None
        finally:
            # Files also grow during a statement that fails, and then stay as large.
            if not is_reading:
                self._limit_size()
        return str(rows), not is_reading

    def _session(self) -> Connection:
        try:
            return self._server.session()
        except InfraError:
            if not self._server.alive:
                raise
            raise Rejected("too many earlier statements have not ended") from None

    def _limit_size(self) -> None:
        """Remove a database that would fill the disk, or the memory when its state is read.

        Raises:
            Rejected: the database was removed.
            InfraError: a statement that does not end holds the database, so the server was stopped.
        """
        ((size,),) = self._server.trusted(
            "SELECT COALESCE(SUM(file_size), 0) FROM information_schema.innodb_sys_tablespaces "
            f"WHERE name LIKE '{DATABASE}/%'"
        )
        if int(str(size)) > FILE_BYTES_MAX:
            self._server.end_session()
            try:
                self._server.trusted(
                    f"DROP DATABASE IF EXISTS {DATABASE}",
                    f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
                )
            except InfraError as error:
                self._server.stop()
                raise InfraError(
                    f"the database exceeds {FILE_BYTES_MAX} bytes, and is in use: {error}"
                ) from None
            raise Rejected(f"the database exceeds {FILE_BYTES_MAX} bytes and was removed")

    def tables(self) -> list[JsonObject]:
        """Return the initial tables in their order, then those of the agent by name."""
        rows = self._server.trusted(
            # An agent may have dropped the whole database.
            f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4",
            f"SHOW FULL TABLES FROM {DATABASE} WHERE Table_type = 'BASE TABLE'",
        )
        names = {str(row[0]) for row in rows}
        initial = [name for name in self._initial_tables if name in names]
        ends_at, bytes_left = time.monotonic() + STATE_TIMEOUT_S, FILE_BYTES_MAX
        tables: list[JsonObject] = []
        for name in (*initial, *sorted(names.difference(initial))):
            table = None
            if time.monotonic() < ends_at:
                table = self._table(name, bytes_left)
            # The agent created an unreadable table, such as a merge of missing tables.
            tables.append(table or {"name": name, "columns": [], "rows": []})
            bytes_left -= json_bytes(tables[-1])
        return tables

    def _table(self, name: str, bytes_max: int) -> JsonObject | None:
        try:
            return self._read_table(name, bytes_max)
        except InfraError:
            self._server.trusted("DO 0")  # Raises an error if the server has failed.
            return None

    def _read_table(self, name: str, bytes_max: int) -> JsonObject:
        table = f"{DATABASE}.{quote_name(name)}"
        columns: list[Json] = [
            str(row[0]) for row in self._server.trusted(f"SHOW COLUMNS FROM {table}")
        ]
        rows = self._server.trusted(
            f"SET STATEMENT max_statement_time = {_TABLE_TIMEOUT_S} FOR "
            f"SELECT * FROM {table} LIMIT {ROWS_MAX}",
            bytes_max=bytes_max,
        )
        cells: list[Json] = [[cell_to_json(value) for value in row] for row in rows]
        return {"name": name, "columns": columns, "rows": cells}


def _message(error: Exception) -> str:
    return ": ".join(map(str, error.args))


def _is_reading(statement: str) -> bool:
    """Return whether a statement only reads.

    Raises:
        Rejected: it is of no kind that an agent may execute.
    """
    comments = _COMMENTS.match(statement)
    begin = statement[comments.end() if comments else 0 :].lower()
    is_reading = begin.startswith(READING_KEYWORDS)
    if not is_reading and not begin.startswith(WRITING_KEYWORDS):
        raise Rejected("1235: this statement is not supported")
    return is_reading
