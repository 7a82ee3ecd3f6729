"""Tests of the world ``sql``: MySQL's dialect, and limits of untrusted statements."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.dbbench import sqlite
from fumehood.benchmarks.dbbench.world import CUT_MARK, RESULT_CHARS_MAX, Sql
from fumehood.core.tools import Failure, ToolCall, Value

TABLE: dict[str, Any] = {
    "name": "Persons",
    "columns": ["Name", "Born"],
    "rows": [["Ann", "1990"], ["Zoë", "1985"], ["O'Neil", None]],
}


def _answer(query: str, world: Sql | None = None) -> str:
    result = (world or Sql({"tables": [TABLE]})).call(ToolCall("execute_sql", {"query": query}))
    assert isinstance(result, Value), result
    return str(result.output["response"])


def _rejection(query: str) -> str:
    world = Sql({"tables": [TABLE]})
    result = world.call(ToolCall("execute_sql", {"query": query}))
    assert isinstance(result, Failure), result
    assert world.state == {"tables": [TABLE]}
    return result.message


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT Name FROM Persons WHERE name = 'ANN'", "[('Ann',)]"),
        ("SELECT Name FROM Persons WHERE Name = 'zoe  '", "[('Zoë',)]"),
        ("SELECT Born FROM Persons WHERE Name = 'O\\'Neil'", "[(None,)]"),
        ('SELECT "Name" FROM Persons LIMIT 1', "[('Name',)]"),
        ("SELECT CONCAT(LEFT(Name, 1), '-', Born) FROM Persons WHERE Born = 1990", "[('A-1990',)]"),
        ("SELECT IF(COUNT(*) > 2, 'many', 'few') FROM `Persons`", "[('many',)]"),
        ("SHOW TABLES;", "[('Persons',)]"),
        (
            "SHOW COLUMNS FROM `Persons`",
            "[('Name', 'text', 'YES', '', None, ''), ('Born', 'text', 'YES', '', None, '')]",
        ),
        ("SELECT date('2024-01-31', '+1 day')", "[('2024-02-01',)]"),
        (
            "SELECT DATE_ADD('2024-01-31', INTERVAL 1 DAY), YEAR('2024-01-31')",
            "[('2024-02-01', 2024)]",
        ),
        ("SELECT `Name` FROM Persons WHERE Name = 'ann' # comment", "[('Ann',)]"),
        ("SELECT 7 DIV 2, 7 MOD 2, 7 / 2, TRUNCATE(1.57, 1)", "[(3, 1, 3.5, 1.5)]"),
        (
            "SELECT LOCATE('N', Name), LEFT(Name, 1), RIGHT(Name, 1) FROM Persons LIMIT 1",
            "[(2, 'A', 'n')]",
        ),
        ("SELECT LENGTH(Name), CHAR_LENGTH(Name) FROM Persons WHERE Name = 'Zoe'", "[(4, 3)]"),
        (
            "SELECT SUBSTRING_INDEX('a,b,c', ',', 2), SUBSTRING_INDEX('a,b,c', ',', -1)",
            "[('a,b', 'c')]",
        ),
        ("SELECT GROUP_CONCAT(Name SEPARATOR ';') FROM Persons WHERE Born > 0", "[('Ann;Zoë',)]"),
        ("SELECT UCASE(Name), LCASE('É') FROM Persons WHERE Name = 'Zoe'", "[('ZOË', 'é')]"),
        ("SELECT Name FROM Persons WHERE Born > 199 AND Born BETWEEN 9 AND 1986", "[('Zoë',)]"),
        ("INSERT IGNORE INTO Persons SET Name = 'Bo'", "[]"),
        ("UPDATE Persons SET Born = 1900, Name = 'A' WHERE Born = 1990", "[]"),
        ("TRUNCATE TABLE Persons", "[]"),
    ],
)
def test_mysql_statements_are_answered(query: str, answer: str) -> None:
    assert _answer(query) == answer


def test_a_long_result_is_cut_and_marked() -> None:
    answer = _answer(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) SELECT i FROM n"
    )
    assert answer.endswith(CUT_MARK)
    assert len(answer) == RESULT_CHARS_MAX + len(CUT_MARK)


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
        "CREATE TRIGGER t AFTER INSERT ON Persons BEGIN SELECT 1; END",
        "SELECT zeroblob(40000000)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
        "WITH RECURSIVE n(i, x) AS "
        "(SELECT 1, hex(zeroblob(16000)) UNION ALL SELECT i + 1, x FROM n) "
        "SELECT x FROM n ORDER BY i",
        "INSERT INTO Persons WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
        "SELECT hex(zeroblob(8000)), i FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90000) "
        "SELECT COUNT(DISTINCT date('2024-01-01', i || ' days')) FROM n",
        "SELECT `Nmae` FROM Persons",
        "SELECT Name FROM Persons WHERE Name REGEXP '^a'",
        "SELECT 1; SELECT 2",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "INT(" * 30 + "1" + ")" * 30,
        "SELECT '" + "x" * 70000 + "'",
        "SELECT 1\0",
        "SELECT '" + "'\\" * 30000,
    ],
)
def test_forbidden_and_expensive_statements_are_rejected_without_effect(query: str) -> None:
    assert _rejection(query)


def test_no_file_can_be_attached(tmp_path: Path) -> None:
    file = tmp_path / "made.db"
    _rejection(f"ATTACH DATABASE '{file}' AS outside")
    assert not file.exists()


def test_a_repeated_statement_is_authorized_again() -> None:
    world = Sql({"tables": [TABLE]})
    for count in (4, 5):
        _answer("INSERT INTO Persons VALUES ('Bo', 3)", world)
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
def test_a_long_single_step_ends_at_the_limit_of_processor_time(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CPU_S_MAX", 0.2)
    started_s = time.thread_time()
    assert _rejection(f"{MANY}SELECT COUNT(*) FROM n WHERE {condition}") == "interrupted"
    assert time.thread_time() - started_s < 3


def test_sorting_long_texts_counts_as_steps() -> None:
    rows: list[Any] = [["é" * 4000 + str(at), None] for at in range(400)]
    world = Sql({"tables": [{**TABLE, "rows": rows}]})
    result = world.call(
        ToolCall("execute_sql", {"query": "SELECT Name FROM Persons ORDER BY Name"})
    )
    assert isinstance(result, Failure)
    assert result.message == "interrupted"
    assert _answer("SELECT COUNT(*) FROM Persons", world) == "[(400,)]"


def test_a_name_without_quotes_may_begin_with_a_digit() -> None:
    table: dict[str, Any] = {"name": "1952_Race", "columns": ["1st", "Gap"], "rows": [["a", "b"]]}
    world = Sql({"tables": [table]})
    for query in (
        "INSERT INTO 1952_Race (1st, Gap) VALUES ('c', '+12')",
        "UPDATE 1952_Race SET Gap = 'd' WHERE 1952_Race.1st = 'a'",
    ):
        result = world.call(ToolCall("execute_sql", {"query": query}))
        assert isinstance(result, Value), result
    assert world.state["tables"] == [{**table, "rows": [["a", "d"], ["c", "+12"]]}]
