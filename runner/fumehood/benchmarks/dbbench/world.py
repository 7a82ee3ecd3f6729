"""A SQL database behind one tool: SQLite in memory executes statements in MySQL's dialect.

A result is the rows as text, cut to the length that AgentBench's dbbench shows. All columns are
text, as in the original.
"""

from __future__ import annotations

import re

from fumehood.benchmarks.dbbench.database import Rejected, SqlDatabase
from fumehood.benchmarks.dbbench.sqlite import SqliteAsMySql
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject, tool

RESULT_CHARS_MAX = 800
"""Longer results and error messages are cut and marked."""
CUT_MARK = "[TRUNCATED]"
ROWS_MAX = 200
"""More rows do not fit into ``RESULT_CHARS_MAX``."""
_TRANSACTION = re.compile(
    r"\s*(begin|start\s+transaction|commit|rollback)\s*(work\s*)?;?\s*", re.IGNORECASE
)
_TOOLS = (
    tool(
        "execute_sql",
        "Execute one SQL statement (MySQL) and return its rows or its error.",
        query="string",
    ),
)

CHECKER = "dbbench"
"""Translates the statements."""


class Sql:
    """A database. State: ``tables``, a list of ``{"name", "columns", "rows"}`` with texts and
    nulls."""

    toolset_id = "sql_v1"
    checks_itself = True

    def __init__(self, state: JsonObject, database: SqlDatabase | None = None) -> None:
        """Take over ``state``.

        Args:
            state: As described above.
            database: An empty database; the default is SQLite.

        Raises:
            SpecError: ``tables`` is invalid.
        """
        self._state = state
        self._is_current = True
        self._database = database or SqliteAsMySql()
        self._fill(state.get("tables", []))
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The tables and rows, in the database's order."""
        if not self._is_current:
            tables: list[Json] = [*self._database.tables()]
            self._state = {**self._state, "tables": tables}
            self._is_current = True
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the one tool."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one statement. Each statement is one transaction."""
        # The original executes the first argument, also if it has another name.
        first = next(iter(call.arguments.values()), None)
        query = call.arguments.get("query", first)
        if not isinstance(query, str):
            return reject("sql_error", "The argument query must be one SQL statement as text.")
        if _TRANSACTION.fullmatch(query):
            return Value({"response": "[]"})
        try:
            text, may_have_written = self._database.execute(query, ROWS_MAX)
        except Rejected as rejection:
            return reject("sql_error", _cut(str(rejection)))
        if may_have_written:
            self._is_current = False
            self.revision += 1
        return Value({"response": _cut(text)})

    def _fill(self, tables: Json) -> None:
        if not isinstance(tables, list):
            raise SpecError("initial_state.tables", "must be a list of tables")
        for index, table in enumerate(tables):
            match table:
                case {"name": str(name), "columns": [*columns], "rows": [*rows]} if columns:
                    self._create(f"initial_state.tables[{index}]", name, columns, rows)
                case _:
                    raise SpecError(
                        f"initial_state.tables[{index}]", "must have a name, columns and rows"
                    )

    def _create(self, field: str, name: str, columns: list[Json], rows: list[Json]) -> None:
        if not all(isinstance(column, str) for column in columns):
            raise SpecError(f"{field}.columns", "must be names")
        cells = [row for row in rows if isinstance(row, list) and len(row) == len(columns)]
        if len(cells) < len(rows) or not all(_is_cell(cell) for row in cells for cell in row):
            raise SpecError(f"{field}.rows", "must each have a text or null for every column")
        try:
            self._database.create_table(name, [str(column) for column in columns], cells)
        except Rejected as rejection:
            raise SpecError(field, f"cannot be created: {rejection}") from None


def _cut(text: str) -> str:
    return text if len(text) <= RESULT_CHARS_MAX else text[:RESULT_CHARS_MAX] + CUT_MARK


def _is_cell(value: Json) -> bool:
    return value is None or isinstance(value, str)
