"""The world ``sql`` on a MariaDB server, where each attempt has its own database and user.

State and tool equal those of ``sql``. Clock and random numbers are MariaDB's own.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fumehood.benchmarks.dbbench.database import Rejected, cell_to_json, quote_name
from fumehood.benchmarks.dbbench.mariadb_server import STRICT, MariaDbServer, mariadbd, server
from fumehood.benchmarks.dbbench.world import RESULT_CHARS_MAX, Sql
from fumehood.benchmarks.dbbench.world import ROWS_MAX as SHOWN_ROWS_MAX
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.third_party.outside import JsonOutside, Outside
from fumehood.third_party.process import QuestionFailed, are_routed, checker

RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW"
)
"""Without routines, triggers, events and locks, which could outlive or block statements."""
READING_KEYWORDS = ("select", "show", "describe", "desc", "explain", "with", "values", "(")
WRITING_KEYWORDS = (
    *("insert", "update", "delete", "replace", "truncate", "create", "drop", "alter", "rename"),
    "use",
)
"""Other statements could change the limits of the connection, or hide what they execute."""
FILE_BYTES_MAX = 64 << 20
"""Size of the database of an attempt, on the disk of this machine."""
_COMMENTS = re.compile(r"(?:\s+|--\s[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/)+", re.DOTALL)
_LOCKS = re.compile(r"\b(?:get_lock|is_free_lock|is_used_lock|release_(?:all_)?locks?)\b", re.I)
"""Named locks belong to the whole server, so attempts could exchange messages through them."""
VARIABLES_MAX = 16
"""Number of user variables of an attempt. Each has at most 1 MiB, which the server does not count
as memory of the attempt."""
_TEXTS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|/\*(?!M?!).*?\*/|--\s[^\n]*|#[^\n]*""", re.DOTALL
)
"""Texts and comments."""
_VARIABLES = re.compile(r"(?<!@)@(?!@)(`[^`]*`|[\w.$]*)")
ROWS_MAX = 10_000
"""Limit of a table's rows in the state."""
QUESTION_BYTES_MAX = 8 << 20
"""A statement is one argument of a call, and a character has up to six bytes in JSON."""
DATABASE_ALIAS = "task"
"""Name of the database in all results, so that no trace depends on the number of earlier
attempts."""
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
    return MariaDbAttempt(server(), STRICT if is_strict else "")


def open_outside(spec: EpisodeSpec) -> Outside:
    """Open the database of an episode, with the tables of its task."""
    state = copy_object(spec.initial_state)
    database = _new_database(state)
    Sql(state, database)
    server = database.server

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
        answer, question_bytes_max=QUESTION_BYTES_MAX, is_down=lambda: not server.alive
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
    """Implements ``SqlDatabase`` with one database of a server. Use it from one thread at a
    time."""

    def __init__(self, server: MariaDbServer, sql_mode: str = STRICT) -> None:
        """Create an empty database.

        Raises:
            InfraError: The server fails.
        """
        self.server = server
        self._sql_mode = sql_mode
        self._name = server.begin_attempt(RIGHTS)
        weakref.finalize(self, server.ended_attempts.append, self._name)
        self._initial_tables: list[str] = []
        self._variables = set[str]()

    def create_table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Json]]
    ) -> None:
        """Create a table with text columns. A table with a name that MariaDB rejects is omitted."""
        definitions = ", ".join(f"{quote_name(column)} TEXT" for column in columns)
        placeholders = ", ".join(["%s"] * len(columns))
        table = quote_name(name).replace("%", "%%")
        try:
            with self.server.connection(self._name, self._sql_mode).cursor() as cursor:
                cursor.execute(f"CREATE TABLE {quote_name(name)} ({definitions})")
                cursor.executemany(f"INSERT INTO {table} VALUES ({placeholders})", rows)
        except import_module("pymysql").err.Error as error:
            if error.args[0] in _INVALID_NAME_CODES:
                return
            raise Rejected(self._message(error)) from None
        self._initial_tables.append(name)

    def execute(self, statement: str, rows_max: int) -> tuple[str, bool]:
        """Execute one statement of an agent as a transaction."""
        is_reading = _is_reading(statement)
        variables = self._variables | _variables(statement)
        if len(variables) > VARIABLES_MAX:
            raise Rejected(f"more than {VARIABLES_MAX} user variables")
        self._variables = variables
        pymysql = import_module("pymysql")
        connection = self.server.connection(self._name, self._sql_mode)
        cursor = connection.cursor(pymysql.cursors.SSCursor)
        try:
            cursor.execute(statement)
            rows = list(cursor.fetchmany(rows_max + 1)) if cursor.description else []
            if len(rows) > rows_max:
                self._disconnect(cursor)  # The remaining rows are not read.
            else:
                cursor.close()
                connection.commit()
        except (pymysql.err.Error, ValueError) as error:
            if not connection.open or error.args[0] in _CONNECTION_LOST_CODES:
                self._disconnect(cursor)
                raise Rejected("the statement took too long or broke the connection") from None
            raise Rejected(self._message(error)) from None
        if not is_reading:
            self._limit_size()
        visible = [tuple(map(self._replace_name, row)) for row in rows[:rows_max]]
        return str(visible), not is_reading

    def _limit_size(self) -> None:
        """Remove a database that would fill the disk, or the memory when its state is read.

        Raises:
            Rejected: the database was removed.
        """
        ((size,),) = self.server.trusted(
            "SELECT COALESCE(SUM(file_size), 0) FROM information_schema.innodb_sys_tablespaces "
            f"WHERE name LIKE '{self._name}/%'"
        )
        if int(str(size)) > FILE_BYTES_MAX:
            self.server.trusted(
                f"DROP DATABASE IF EXISTS {self._name}",
                f"CREATE DATABASE {self._name} CHARACTER SET utf8mb4",
            )
            self.server.disconnect(self._name)
            raise Rejected(f"the database exceeds {FILE_BYTES_MAX} bytes and was removed")

    def tables(self) -> list[JsonObject]:
        """Return the initial tables in their order, then those of the agent by name."""
        rows = self.server.trusted(
            # An agent may have dropped the whole database.
            f"CREATE DATABASE IF NOT EXISTS {self._name} CHARACTER SET utf8mb4",
            f"SHOW FULL TABLES FROM {self._name} WHERE Table_type = 'BASE TABLE'",
        )
        names = {str(row[0]) for row in rows}
        initial = [name for name in self._initial_tables if name in names]
        return [self._table(name) for name in (*initial, *sorted(names.difference(initial)))]

    def _table(self, name: str) -> JsonObject:
        try:
            return self._read_table(name)
        except InfraError:
            self.server.trusted("DO 0")  # Raises an error if the server has failed.
            # The agent created an unreadable table, such as a merge of missing tables.
            return {"name": name, "columns": [], "rows": []}

    def _read_table(self, name: str) -> JsonObject:
        table = f"{self._name}.{quote_name(name)}"
        columns: list[Json] = [
            str(row[0]) for row in self.server.trusted(f"SHOW COLUMNS FROM {table}")
        ]
        rows = self.server.trusted(f"SELECT * FROM {table} LIMIT {ROWS_MAX}")
        cells: list[Json] = [[cell_to_json(value) for value in row] for row in rows]
        return {"name": name, "columns": columns, "rows": cells}

    def _disconnect(self, cursor: Any) -> None:
        """Close a connection in an unknown state."""
        if cursor._result is not None:
            # Otherwise PyMySQL reads all remaining rows.
            cursor._result.unbuffered_active = False
        self.server.disconnect(self._name)

    def _replace_name(self, value: Any) -> Any:
        return value.replace(self._name, DATABASE_ALIAS) if isinstance(value, str) else value

    def _message(self, error: Exception) -> str:
        return ": ".join(map(str, error.args)).replace(self._name, DATABASE_ALIAS)


def _is_reading(statement: str) -> bool:
    """Return whether a statement only reads.

    Raises:
        Rejected: it is of no kind that an agent may execute.
    """
    comments = _COMMENTS.match(statement)
    begin = statement[comments.end() if comments else 0 :].lower()
    is_reading = begin.startswith(READING_KEYWORDS)
    if (not is_reading and not begin.startswith(WRITING_KEYWORDS)) or _LOCKS.search(statement):
        raise Rejected("1235: this statement is not supported")
    return is_reading


def _variables(statement: str) -> set[str]:
    """Return the names of the user variables in a statement.

    Raises:
        Rejected: a name is in quotes, like a text.
    """
    names = {name.strip("`").lower() for name in _VARIABLES.findall(_TEXTS.sub(" ", statement))}
    if "" in names:
        raise Rejected("names of user variables cannot be in quotes")
    return names
