"""Tests of dbbench on MariaDB: equal scores as on SQLite, and isolation of attempts."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest

from fumehood.benchmarks.dbbench import mariadb_server
from fumehood.benchmarks.dbbench.world_mariadb import MariaDbSql
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Case
from fumehood.core.tools import Failure, ToolCall, Value
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_data import SAMPLES, benchmark_data
from tests.parts.mariadb import needs_mariadb

needs_mariadb()

SAMPLE = SAMPLES / "dbbench.jsonl"
TABLE: JsonObject = {
    "name": "Two % words",
    "columns": ["Name", "Note"],
    "rows": [["Ann", None], ["Bé", "x"]],
}


def _success(case: Case, moves: Sequence[Move]) -> bool | None:
    return score_evidence(case.task, case.gold, play_in_memory(case.task, moves)).success


def _both(path: Path) -> list[tuple[Case, Case]]:
    pairs = zip(
        load_suite(f"dbbench:sqlite:{path}").cases,
        load_suite(f"dbbench:mariadb:{path}").cases,
        strict=True,
    )
    return list(pairs)


def _world() -> MariaDbSql:
    tables: list[Json] = [TABLE]
    return MariaDbSql({"tables": tables})


def _result(world: MariaDbSql, query: str) -> str:
    result = world.call(ToolCall("execute_sql", {"query": query}))
    assert isinstance(result, Value | Failure)
    return (
        str(result.output["response"])
        if isinstance(result, Value)
        else f"rejected {result.message}"
    )


@pytest.mark.slow
def test_gold_and_the_no_op_have_equal_scores_on_both_databases() -> None:
    for sqlite, mariadb in _both(SAMPLE):
        assert (
            _success(sqlite, sqlite.gold.oracle or ())
            is _success(mariadb, mariadb.gold.oracle or ())
            is True
        )
        assert _success(mariadb, ({"submit": ""},)) is False


@pytest.mark.slow
def test_gold_of_the_published_dev_split_has_equal_scores_on_both_databases() -> None:
    pairs = _both(benchmark_data("agentbench-dbbench/dev.jsonl"))
    scores = [
        (_success(sqlite, sqlite.gold.oracle or ()), _success(mariadb, mariadb.gold.oracle or ()))
        for sqlite, mariadb in pairs
    ]
    assert scores == [(True, True)] * 60


def test_features_of_mysql_alone_are_available() -> None:
    world = _world()
    assert _result(world, "SELECT Name FROM `Two % words` WHERE Name REGEXP '^b'") == "[('Bé',)]"
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
    assert _result(world, query) == "[('Two % words',)]"
    assert _result(world, "SELECT DATABASE()") == "[('task',)]"


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE `Two % words` SET Note = Note + 0",
        "UPDATE `Two % words` SET Note = 'y' WHERE Name = 16",
    ],
)
def test_text_is_no_number_in_a_change_unless_the_mode_is_lenient(query: str) -> None:
    tables: list[Json] = [TABLE]
    strict, lenient = (
        MariaDbSql({"tables": tables}),
        MariaDbSql({"tables": tables, "strict": False}),
    )
    assert _result(strict, query).startswith("rejected 1292: Truncated incorrect")
    assert strict.state["tables"] == tables
    assert _result(lenient, query) == "[]"


def test_the_prefix_of_the_suite_selects_the_mode() -> None:
    (strict, *_), (lenient, *_) = (
        load_suite(f"dbbench:{name}:{SAMPLE}").cases for name in ("mariadb", "mariadb_lenient")
    )
    assert "strict" not in strict.task.initial_state
    assert lenient.task.initial_state["strict"] is False
    with pytest.raises(SpecError, match="must be true or false"):
        MariaDbSql({"tables": [], "strict": "yes"})


def test_the_state_contains_changes_of_accepted_statements() -> None:
    world = _world()
    assert _result(world, "UPDATE `Two % words` SET Note = 'y' WHERE Name = 'ann'") == "[]"
    assert _result(world, "CREATE TABLE a (b INT)") == "[]"
    assert _result(world, "INSERT INTO a VALUES (1), (NULL)") == "[]"
    assert _result(world, "INSERT INTO nowhere VALUES (1)").startswith(
        "rejected 1146: Table 'task.nowhere'"
    )
    assert world.revision == 3
    assert world.state["tables"] == [
        {**TABLE, "rows": [["Ann", "y"], ["Bé", "x"]]},
        {"name": "a", "columns": ["b"], "rows": [["1"], [None]]},
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM mysql.user",
        "SELECT 1 INTO OUTFILE '/tmp/x'",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE `Two % words`",
        "SET GLOBAL max_connections = 1",
        "SHUTDOWN",
        "INSTALL SONAME 'x'",
        "CREATE PROCEDURE p() SELECT 1",
        "LOCK TABLES `Two % words` WRITE",
        "SELECT 1; SELECT 2",
        "USE mysql",
    ],
)
def test_an_attempt_cannot_leave_its_database(query: str) -> None:
    assert _result(_world(), query).startswith("rejected")


def test_no_file_can_be_read() -> None:
    assert _result(_world(), "SELECT LOAD_FILE('/etc/passwd')") == "[(None,)]"


def test_a_statement_that_does_not_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "READ_TIMEOUT_S", 0.3)
    world = _world()
    endless = "SELECT SLEEP(100)"
    assert _result(world, endless).startswith("rejected the statement took too long")
    assert _result(world, "SELECT COUNT(*) FROM `Two % words`") == "[(2,)]"


def test_rows_beyond_the_limit_are_not_read() -> None:
    world = _world()
    tables = ", ".join(f"`Two % words` AS t{number}" for number in range(20))
    assert _result(world, f"SELECT t0.Name FROM {tables}").endswith("[TRUNCATED]")
    assert _result(world, "SELECT COUNT(*) FROM `Two % words`") == "[(2,)]"


@pytest.mark.parametrize(
    ("statement", "remaining"),
    [
        ("DROP DATABASE {database}", []),
        (
            "CREATE TABLE broken (a INT) ENGINE = MERGE UNION = (nowhere)",
            [TABLE, {"name": "broken", "columns": ["a"], "rows": []}],
        ),
    ],
)
def test_a_destroyed_database_is_not_an_infrastructure_failure(
    statement: str, remaining: list[JsonObject]
) -> None:
    world = _world()
    name = bytes.fromhex(_result(world, "SELECT HEX(DATABASE())")[3:-4]).decode()
    assert not _result(world, statement.format(database=name)).startswith("rejected")
    assert world.state == {"tables": remaining}


@pytest.mark.slow
def test_the_server_has_no_port_and_ends_with_its_process() -> None:
    code = (
        "import sys\n"
        "from fumehood.benchmarks.dbbench.mariadb_server import MariaDbServer\n"
        "server = MariaDbServer()\n"
        "row = server.trusted('SELECT @@datadir, @@skip_networking, @@pid_file')\n"
        "print(*row[0], flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        data, closed, pid_file = process.stdout.readline().decode().split()
        server_pid = int(Path(pid_file).read_text(encoding="ascii"))
        os.kill(process.pid, signal.SIGKILL)
    assert closed == "1"
    deadline = time.monotonic() + 10
    while Path(data).parent.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(data).parent.exists()
    assert not Path(f"/proc/{server_pid}").exists()


def test_a_missing_server_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mariadb_server, "SERVER_PATH", "/nowhere")
    with pytest.raises(InputError, match=r"apt-get install .*mariadb-server-core") as error:
        load_suite(f"dbbench:mariadb:{SAMPLE}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SET SESSION max_statement_time = 0",
        "/*! SET max_statement_time = 0 */",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "BEGIN NOT ATOMIC SET @a = 1; END",
        "DO SLEEP(1)",
    ],
)
def test_no_statement_changes_the_limits_of_its_session(statement: str) -> None:
    assert _result(_world(), statement).startswith("rejected")


SLOW = "INSTR(REPEAT('a', 1000000 + a * 0), CONCAT(REPEAT('a', 500000), 'b'))"
"""An expression that takes minutes and ignores that it is killed."""


@pytest.mark.slow
def test_a_column_whose_calculation_does_not_end_delays_no_other_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mariadb_server, "READ_TIMEOUT_S", 3)
    world, other = _world(), _world()
    assert _result(world, f"CREATE TABLE slow (a INT, b INT AS ({SLOW}))") == "[]"
    assert _result(world, "INSERT INTO slow (a) VALUES (1)") == "[]"
    reading = Thread(target=lambda: world.state)
    reading.start()
    assert _result(other, "UPDATE `Two % words` SET Note = 'x'") == "[]"
    assert other.state["tables"]
    assert reading.is_alive(), "the control"
    reading.join()
    assert world.state["tables"] == [TABLE, {"name": "slow", "columns": [], "rows": []}]


@pytest.mark.slow
def test_statements_that_do_not_end_use_up_only_the_sessions_of_their_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mariadb_server, "READ_TIMEOUT_S", 0.3)
    world = _world()
    endless = f"SELECT {SLOW.replace('a * 0', '0')}"
    for _ in range(mariadb_server.SESSIONS_MAX):
        assert _result(world, endless).startswith("rejected the statement took too long")
    assert _result(world, "SELECT 1").startswith("rejected too many earlier statements")
    assert world.state["tables"] == [TABLE]


def test_large_rows_do_not_fill_the_memory_of_the_service() -> None:
    world = _world()
    assert _result(world, "CREATE TABLE wide (a INT, b LONGTEXT AS (REPEAT('x', 1000000)))") == "[]"
    assert _result(world, "INSERT INTO wide (a) VALUES " + ", ".join(["(1)"] * 100)) == "[]"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert _result(world, "SELECT b, b, b FROM wide").endswith("[TRUNCATED]")
    assert world.state["tables"] == [TABLE, {"name": "wide", "columns": [], "rows": []}]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 256 << 10, "KiB"


@pytest.mark.slow
def test_statements_that_fail_cannot_fill_the_disk_either() -> None:
    world = MariaDbSql({"tables": []})
    rows = " UNION ALL ".join(f"SELECT {number}, REPEAT('x', 900000)" for number in range(2, 14))
    for number in range(9):
        table = f"large{number}"
        _result(world, f"CREATE TABLE {table} (id INT PRIMARY KEY, x LONGTEXT)")
        _result(world, f"INSERT INTO {table} VALUES (1, '')")
        # The last row has the key of the first one.
        if "was removed" in _result(world, f"INSERT INTO {table} {rows} UNION ALL SELECT 1, ''"):
            break
    else:
        pytest.fail("the database is too large")
    assert world.state["tables"] == []


@pytest.mark.slow
def test_a_database_that_would_fill_the_disk_is_removed() -> None:
    world = _world()
    _result(world, "CREATE TABLE large (x LONGTEXT)")
    _result(world, "INSERT INTO large VALUES (REPEAT('x', 60000))")
    for _ in range(14):
        if "removed" in _result(world, "INSERT INTO large SELECT CONCAT(x) FROM large"):
            break
    else:
        pytest.fail("the database is too large")
    assert world.state["tables"] == []
