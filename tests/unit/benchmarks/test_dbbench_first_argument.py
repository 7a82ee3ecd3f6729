"""dbbench executes the first argument of a call, as the original does."""

from __future__ import annotations

from fumehood.benchmarks.dbbench.world import Sql
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, ToolCall, Value

TABLE: JsonObject = {"name": "t", "columns": ["a"], "rows": [["1"]]}


def test_an_argument_with_another_name_is_executed() -> None:
    world = Sql({"tables": [TABLE]})
    named = world.call(ToolCall("execute_sql", {"sql": "SELECT a FROM t"}))
    extra = world.call(ToolCall("execute_sql", {"query": "SELECT a FROM t", "note": "x"}))
    assert named == extra == Value({"response": "[('1',)]"})


def test_a_call_without_a_text_is_rejected() -> None:
    world = Sql({"tables": [TABLE]})
    refused: tuple[JsonObject, ...] = ({}, {"query": 1}, {"query": None})
    for arguments in refused:
        assert isinstance(world.call(ToolCall("execute_sql", arguments)), Failure)
