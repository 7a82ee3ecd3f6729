"""What can be had of a PostgreSQL database without PostgreSQL: its tables and their rows, to be read.

The statements that made it are carried out by SQLite, which understands most of them; how it was used since,
which PostgreSQL keeps in ``pg_stat_…``, nobody knows here, and asking for it is answered so.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from fumehood.benchmarks.dbbench.sqlite_guard import GuardedDatabase, Refused
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import refuse, tool

ROWS_MAX = 100
NOON = "'2024-06-01 12:00:00'"
"""What the clock says while the tables are made."""
_CLOCK = re.compile(r"\bcurrent_(timestamp|date|time)\b|\bnow\s*\(\s*\)", re.IGNORECASE)
_SERIAL = re.compile(r"\b(big|small)?serial\b", re.IGNORECASE)
_LIVE = re.compile(r"\bpg_\w+", re.IGNORECASE)
_TOOLS = (
    tool(
        "query_db", "Query the database with one SQL statement; nothing is written.", sql="string"
    ),
)


class PostgresSketch:
    """State: ``init_sql``, the statements that made the database; none makes an empty one."""

    toolset_id = "postgres_sketch_v1"

    def __init__(self, state: JsonObject) -> None:
        """Make the tables; what SQLite does not understand is not there.

        Raises:
            SpecError: there is something else in place of the statements.
        """
        script = state.get("init_sql", "")
        if not isinstance(script, str):
            raise SpecError("initial_state.init_sql", "must be a text")
        self.state = state
        self.revision = 0
        self._database = GuardedDatabase()
        for statement in _statements(script):
            self._try(statement)

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the one tool."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Answer a query; whatever it writes is taken back."""
        query = str(call.arguments["sql"])
        live = _LIVE.search(query)
        if live is not None:
            return refuse(
                "not_recorded", f"{live[0]} is kept by a live PostgreSQL; there is none here."
            )
        self._database.trusted("SAVEPOINT before")
        try:
            rows, _ = self._database.untrusted(query, ROWS_MAX)
        except Refused as refused:
            return refuse("sql_error", str(refused))
        finally:
            self._database.trusted("ROLLBACK TO before")
            self._database.trusted("RELEASE before")
        return Value(
            {"rows": [[None if cell is None else str(cell) for cell in row] for row in rows]}
        )

    def _try(self, statement: str) -> None:
        try:
            self._database.untrusted(_CLOCK.sub(NOON, _SERIAL.sub("INTEGER", statement)), 1)
        except Refused:
            # Another dialect; a table that is missing is missing for whoever asks.
            return


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
