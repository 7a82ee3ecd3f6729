"""A SQL database behind one tool."""

from __future__ import annotations

from fumehood.benchmarks.dbbench import mysql_dialect
from fumehood.benchmarks.dbbench.database import Refused, SqlDatabase
from fumehood.benchmarks.dbbench.sqlite import SqliteAsMySql
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import refuse, tool

TEXT_CHARS_MAX = 800
"""Of an answer or an error; what is longer is cut and marked."""
CUT = "[TRUNCATED]"
ROWS_MAX = 200
"""More could not be seen within ``TEXT_CHARS_MAX``."""

_TOOLS = (
    tool(
        "execute_sql",
        "Execute one SQL statement (MySQL) and see its rows or its error.",
        query="string",
    ),
)


class Sql:
    """State: ``tables``, a list of ``{"name", "columns", "rows"}``; rows are lists of texts and nulls."""

    toolset_id = "sql_v1"

    def __init__(self, state: JsonObject, database: SqlDatabase | None = None) -> None:
        """Take over ``state``.

        Args:
            state: as above.
            database: an empty one; None for SQLite's.

        Raises:
            SpecError: ``tables`` is there and is not such a list.
        """
        self._state = state
        self._is_fresh = True
        self._database = database or SqliteAsMySql()
        self._fill(state.get("tables", []))
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The tables, in the order in which the database keeps them and their rows."""
        if not self._is_fresh:
            tables: list[Json] = [*self._database.tables()]
            self._state = {**self._state, "tables": tables}
            self._is_fresh = True
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the one tool."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call whose arguments fit its tool's schema."""
        query = str(call.arguments["query"])
        if mysql_dialect.is_of_transactions(query):
            return Value({"response": "[]"})
        try:
            rows, wrote = self._database.execute(query, ROWS_MAX)
        except Refused as refused:
            return refuse("sql_error", _cut(str(refused)))
        if wrote:
            self._is_fresh = False
            self.revision += 1
        return Value({"response": _cut(str(rows))})

    def _fill(self, tables: Json) -> None:
        if not isinstance(tables, list):
            raise SpecError("initial_state.tables", "must be a list of tables")
        for index, table in enumerate(tables):
            match table:
                case {"name": str(name), "columns": [*columns], "rows": [*rows]} if columns:
                    self._make(f"initial_state.tables[{index}]", name, columns, rows)
                case _:
                    raise SpecError(
                        f"initial_state.tables[{index}]", "must have a name, columns and rows"
                    )

    def _make(self, field: str, name: str, columns: list[Json], rows: list[Json]) -> None:
        if not all(isinstance(column, str) for column in columns):
            raise SpecError(f"{field}.columns", "must be names")
        cells = [row for row in rows if isinstance(row, list) and len(row) == len(columns)]
        if len(cells) < len(rows) or not all(_is_cell(cell) for row in cells for cell in row):
            raise SpecError(f"{field}.rows", "must each have a text or null for every column")
        try:
            self._database.make(name, [str(column) for column in columns], cells)
        except Refused as refused:
            raise SpecError(field, f"cannot be made: {refused}") from None


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + CUT


def _is_cell(value: Json) -> bool:
    return value is None or isinstance(value, str)
