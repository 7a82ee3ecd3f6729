"""A PostgreSQL database with a problem, behind MARBLE's one tool ``query_db``.

The server starts at the first call, so an attempt without calls costs nothing.
"""

from __future__ import annotations

import weakref
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fumehood.benchmarks.marble.postgresql import (
    LOADS,
    PostgreSqlServer,
    Rows,
    StatementFailed,
    programs,
)
from fumehood.benchmarks.marble.record import Environment
from fumehood.benchmarks.shared.private_server import QUESTION_BYTES_MAX
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.outside import JsonOutside, Outside
from fumehood.third_party.process import are_routed, checker
from fumehood.worlds.schema import reject, tool

CELL_CHARS_MAX = 1000
RESULT_CHARS_MAX = 16_000
_TOOLS = (
    tool(
        "query_db",
        "Execute one SQL statement that reads the PostgreSQL database, and return at most 100 rows "
        "or the error. Among the views are pg_stat_statements, pg_stat_activity, pg_locks, "
        "pg_indexes, pg_stat_user_indexes, pg_stat_all_tables and pg_stat_user_tables.",
        sql="string",
    ),
)


def preload() -> None:
    """Check that the server is installed while this process can read its programs."""
    programs()


class Database:
    """A database. State: ``init_sql`` and ``anomalies``, as in a published record. No call changes
    it."""

    toolset_id = "marble_database_v1"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: An anomaly is unknown, or a value is invalid.
        """
        try:
            self._environment = TypeAdapter(Environment).validate_python(state)
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, ("initial_state", *problem["loc"])))
            raise SpecError(field, problem["msg"]) from None
        for index, anomaly in enumerate(self._environment.anomalies):
            if anomaly.name not in LOADS:
                raise SpecError(
                    f"initial_state.anomalies[{index}].anomaly",
                    f"must be one of {', '.join(LOADS)}",
                )
        self.state = state
        self.revision = 0
        self._server: PostgreSqlServer | RemoteServer | None = None

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the one tool."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one statement."""
        sql = call.arguments.get("sql")
        if not isinstance(sql, str):
            return reject("sql_error", "The argument sql must be one SQL statement as text.")
        try:
            rows = self.query(sql)
        except StatementFailed as error:
            return reject("sql_error", str(error)[:CELL_CHARS_MAX])
        return Value(_shown(rows))

    def query(self, sql: str) -> Rows:
        """Execute one statement; the first one starts the server.

        Raises:
            StatementFailed: the server rejects it.
            InfraError: the server does not start, or has ended.
        """
        if self._server is None:
            self._server = self._start()
        return self._server.query(sql)

    @property
    def has_started(self) -> bool:
        """Whether the server has started."""
        return self._server is not None

    def _start(self) -> PostgreSqlServer | RemoteServer:
        if are_routed():
            return RemoteServer()
        server = PostgreSqlServer(self._environment.init_sql, self._environment.anomalies)
        weakref.finalize(self, server.stop)
        return server


class RemoteServer:
    """Has the method of the server, in the process of an episode."""

    def query(self, statement: str) -> Rows:
        """Execute a statement of an agent."""
        answer: Any = checker("postgresql").ask({"statement": statement})
        if "failed" in answer:
            raise StatementFailed(answer["failed"])
        rows = tuple(map(tuple, answer["rows"]))
        return Rows(tuple(answer["columns"]), rows, answer["are_complete"])


def open_outside(spec: EpisodeSpec) -> Outside:
    """Open the database of an episode; the first statement starts its server."""
    database = Database(copy_object(spec.initial_state))
    weak = weakref.ref(database)

    def answer(question: Any) -> JsonObject:
        try:
            rows: JsonObject = asdict(database.query(str(question["statement"])))
        except StatementFailed as error:
            return {"failed": str(error)}
        return rows

    return JsonOutside(
        answer,
        question_bytes_max=QUESTION_BYTES_MAX,
        # A statement of the agent may have ended a server that has started.
        is_down=lambda: (held := weak()) is None or not held.has_started,
    )


def _shown(result: Rows) -> JsonObject:
    rows: list[Json] = []
    left = RESULT_CHARS_MAX
    for row in result.rows:
        cells = [None if cell is None else _cut(cell) for cell in row]
        left -= sum(len(cell or "") for cell in cells)
        if left < 0:
            break
        rows.append([*cells])
    is_whole = result.are_complete and len(rows) == len(result.rows)
    shown: JsonObject = {"columns": [*result.columns], "rows": rows}
    return shown if is_whole else {**shown, "note": "There are more rows."}


def _cut(cell: str) -> str:
    return cell if len(cell) <= CELL_CHARS_MAX else f"{cell[:CELL_CHARS_MAX]}…"
