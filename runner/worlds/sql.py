"""A database behind one tool: statements in MySQL's dialect, carried out by SQLite in memory.

An answer is the rows as text, cut to what AgentBench's dbbench shows of it. All columns are text, as there.
"""

from __future__ import annotations

from runner.core.errors import SpecError
from runner.core.json_values import Json, JsonObject
from runner.core.tools import ToolCall, ToolResult, ToolSpec, Value
from runner.worlds import mysql_words
from runner.worlds.refusals import refuse
from runner.worlds.schema import tool
from runner.worlds.sqlite_guard import GuardedDatabase, Refused, Row

TEXT_CHARS_MAX = 800
"""Of an answer or an error; what is longer is cut and marked."""
CUT = "[TRUNCATED]"
ROWS_MAX = 200
"""More could not be seen within ``TEXT_CHARS_MAX``."""
COLLATION = "mysql_text"

_TOOLS = (
    tool("execute_sql", "Execute one SQL statement (MySQL) and see its rows or its error.", query="string"),
)


class Sql:
    """State: ``tables``, a list of ``{"name", "columns", "rows"}``; rows are lists of texts and nulls."""

    toolset_id = "sql_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: ``tables`` is there and is not such a list.
        """
        self._state = state
        self._is_fresh = True
        self._database = GuardedDatabase()
        self._database.add_collation(COLLATION, mysql_words.compare)
        for name, (arguments, function) in mysql_words.FUNCTIONS.items():
            self._database.add_function(name, arguments, function)
        self._fill(state.get("tables", []))
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The tables in the order in which they were made, their rows in that in which SQLite keeps them."""
        if not self._is_fresh:
            self._state = {**self._state, "tables": self._tables()}
            self._is_fresh = True
        return self._state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the one tool."""
        return _TOOLS

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call whose arguments fit its tool's schema."""
        query = str(call.arguments["query"])
        if mysql_words.is_of_transactions(query):
            return Value({"response": "[]"})
        try:
            rows, wrote = self._execute(query)
        except Refused as refused:
            return refuse("sql_error", _cut(str(refused)))
        if wrote:
            self._is_fresh = False
            self.revision += 1
        return Value({"response": _cut(str(rows))})

    def _execute(self, query: str) -> tuple[list[Row], bool]:
        if mysql_words.asks_for_tables(query):
            return [(name,) for name in self._names()], False
        table = mysql_words.table_asked_about(query)
        if table is not None:
            return [(column, "text", "YES", "", None, "") for column in self._columns(table)], False
        return self._database.untrusted(mysql_words.to_sqlite(query), ROWS_MAX)

    def _names(self) -> list[str]:
        listed = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        return [name for (name,) in self._database.trusted(listed)]

    def _columns(self, table: str) -> list[str]:
        found = self._database.trusted("SELECT name FROM pragma_table_info(?)", (table,))
        if not found:
            raise Refused(f"no such table: {table}")
        return [name for (name,) in found]

    def _tables(self) -> list[Json]:
        return [self._table(name) for name in self._names()]

    def _table(self, name: str) -> JsonObject:
        columns: list[Json] = [*self._columns(name)]
        found = self._database.trusted(f"SELECT * FROM {_quoted(name)}")
        rows: list[Json] = [[_cell(value) for value in row] for row in found]
        return {"name": name, "columns": columns, "rows": rows}

    def _fill(self, tables: Json) -> None:
        if not isinstance(tables, list):
            raise SpecError("initial_state.tables", "must be a list of tables")
        for index, table in enumerate(tables):
            match table:
                case {"name": str(name), "columns": [*columns], "rows": [*rows]} if columns:
                    self._make(f"initial_state.tables[{index}]", name, columns, rows)
                case _:
                    raise SpecError(f"initial_state.tables[{index}]", "must have a name, columns and rows")

    def _make(self, field: str, name: str, columns: list[Json], rows: list[Json]) -> None:
        if not all(isinstance(column, str) for column in columns):
            raise SpecError(f"{field}.columns", "must be names")
        cells = [row for row in rows if isinstance(row, list) and len(row) == len(columns)]
        if len(cells) < len(rows) or not all(_is_cell(cell) for row in cells for cell in row):
            raise SpecError(f"{field}.rows", "must each have a text or null for every column")
        told = ", ".join(f"{_quoted(str(column))} TEXT COLLATE {COLLATION}" for column in columns)
        marks = ", ".join("?" * len(columns))
        try:
            self._database.trusted(f"CREATE TABLE {_quoted(name)} ({told})")
            self._database.fill(f"INSERT INTO {_quoted(name)} VALUES ({marks})", cells)
        except Refused as refused:
            raise SpecError(field, f"cannot be made: {refused}") from None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + CUT


def _is_cell(value: Json) -> bool:
    return value is None or isinstance(value, str)


def _cell(value: object) -> Json:
    """Return what a cell holds; in a text column that is text, others may hold anything."""
    return value if value is None or isinstance(value, str) else str(value)
