"""The database behind a tool: MySQL's words, and no way out, no end, no flood."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.dbbench import sqlite
from fumehood.benchmarks.dbbench.world import CUT, TEXT_CHARS_MAX, Sql
from fumehood.core.tools import Failure, ToolCall, Value

TABLE: dict[str, Any] = {
    "name": "People",
    "columns": ["Name", "Born"],
    "rows": [["Ann", "1990"], ["Zoë", "1985"], ["O'Neil", None]],
}


def _answer(query: str, world: Sql | None = None) -> str:
    result = (world or Sql({"tables": [TABLE]})).call(ToolCall("execute_sql", {"query": query}))
    assert isinstance(result, Value), result
    return str(result.output["response"])


def _refusal(query: str) -> str:
    world = Sql({"tables": [TABLE]})
    result = world.call(ToolCall("execute_sql", {"query": query}))
    assert isinstance(result, Failure), result
    assert world.state == {"tables": [TABLE]}
    return result.message


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT Name FROM People WHERE name = 'ANN'", "[('Ann',)]"),
        ("SELECT Name FROM People WHERE Name = 'zoe  '", "[('Zoë',)]"),
        ("SELECT Born FROM People WHERE Name = 'O\\'Neil'", "[(None,)]"),
        ('SELECT "Name" FROM People LIMIT 1', "[('Name',)]"),
        ("SELECT CONCAT(LEFT(Name, 1), '-', Born) FROM People WHERE Born = 1990", "[('A-1990',)]"),
        ("SELECT IF(COUNT(*) > 2, 'many', 'few') FROM `People`", "[('many',)]"),
        ("SHOW TABLES;", "[('People',)]"),
        (
            "SHOW COLUMNS FROM `People`",
            "[('Name', 'text', 'YES', '', None, ''), ('Born', 'text', 'YES', '', None, '')]",
        ),
        ("SELECT date('2024-01-31', '+1 day')", "[('2024-02-01',)]"),
    ],
)
def test_it_understands(query: str, answer: str) -> None:
    assert _answer(query) == answer


def test_a_long_answer_is_cut_and_says_so() -> None:
    answer = _answer(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) SELECT i FROM n"
    )
    assert answer.endswith(CUT)
    assert len(answer) == TEXT_CHARS_MAX + len(CUT)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT random()",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT strftime('%s', 'NOW')",
        "SELECT datetime('2024-01-01', 'localtime')",
        "SELECT load_extension('/x')",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO '/tmp/copy'",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "CREATE TRIGGER t AFTER INSERT ON People BEGIN SELECT 1; END",
        "SELECT zeroblob(40000000)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
        "WITH RECURSIVE n(i, x) AS (SELECT 1, hex(zeroblob(16000)) UNION ALL SELECT i + 1, x FROM n) "
        "SELECT x FROM n ORDER BY i",
        "INSERT INTO People WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
        "SELECT hex(zeroblob(8000)), i FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90000) "
        "SELECT COUNT(DISTINCT date('2024-01-01', i || ' days')) FROM n",
        "SELECT 1\0",
        "SELECT '" + "'\\" * 30000,
    ],
)
def test_it_refuses_and_has_changed_nothing(query: str) -> None:
    assert _refusal(query)


def test_it_attaches_no_file(tmp_path: Path) -> None:
    file = tmp_path / "made.db"
    _refusal(f"ATTACH DATABASE '{file}' AS outside")
    assert not file.exists()


def test_a_statement_made_twice_is_looked_at_twice() -> None:
    world = Sql({"tables": [TABLE]})
    for count in (4, 5):
        _answer("INSERT INTO People VALUES ('Bo', 3)", world)
        state: Any = world.state
        assert len(state["tables"][0]["rows"]) == count
    assert world.revision == 2


MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90000) "


@pytest.mark.parametrize(
    "condition",
    [
        "(hex(zeroblob(15000)) || i) LIKE '" + "%0" * 100 + "x'",
        "instr(hex(zeroblob(15000)) || i, hex(zeroblob(7000)) || 'x')",
    ],
)
def test_what_takes_long_within_a_step_is_ended_by_the_processors_time(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CPU_S_MAX", 0.2)
    started_s = time.thread_time()
    assert _refusal(f"{MANY}SELECT COUNT(*) FROM n WHERE {condition}") == "interrupted"
    assert time.thread_time() - started_s < 3


def test_sorting_long_texts_is_work_that_counts() -> None:
    rows: list[Any] = [["é" * 4000 + str(at), None] for at in range(400)]
    world = Sql({"tables": [{**TABLE, "rows": rows}]})
    result = world.call(ToolCall("execute_sql", {"query": "SELECT Name FROM People ORDER BY Name"}))
    assert isinstance(result, Failure)
    assert result.message == "interrupted"
    assert _answer("SELECT COUNT(*) FROM People", world) == "[(400,)]"
