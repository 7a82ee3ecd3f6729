"""dbbench on a real MariaDB: the same verdicts as on SQLite, and nobody gets out of an attempt's database."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fumehood.benchmarks.dbbench import mariadb_server
from fumehood.benchmarks.dbbench.mariadb_server import server
from fumehood.benchmarks.dbbench.world_mariadb import MariaDbSql
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InfraError, InputError
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


def _verdict(case: Case, moves: Sequence[Move]) -> bool | None:
    return score_evidence(case.task, case.gold, play_in_memory(case.task, moves)).success


def _both(path: Path) -> list[tuple[Case, Case]]:
    pairs = zip(
        load_suite(f"dbbench:{path}").cases,
        load_suite(f"dbbench:mariadb:{path}").cases,
        strict=True,
    )
    return list(pairs)


def _world() -> MariaDbSql:
    tables: list[Json] = [TABLE]
    return MariaDbSql({"tables": tables})


def _said(world: MariaDbSql, query: str) -> str:
    result = world.call(ToolCall("execute_sql", {"query": query}))
    assert isinstance(result, Value | Failure)
    return (
        str(result.output["response"]) if isinstance(result, Value) else f"refused {result.message}"
    )


def test_gold_and_nothing_get_the_same_verdict_on_both() -> None:
    for here, there in _both(SAMPLE):
        assert (
            _verdict(here, here.gold.oracle or ())
            is _verdict(there, there.gold.oracle or ())
            is True
        )
        assert _verdict(there, ({"submit": ""},)) is False


def test_every_gold_of_the_published_dev_split_gets_the_same_verdict_on_both() -> None:
    pairs = _both(benchmark_data("agentbench-dbbench/dev.jsonl"))
    verdicts = [
        (_verdict(here, here.gold.oracle or ()), _verdict(there, there.gold.oracle or ()))
        for here, there in pairs
    ]
    assert verdicts == [(True, True)] * 60


def test_what_is_of_mysql_alone_is_answered() -> None:
    world = _world()
    assert _said(world, "SELECT Name FROM `Two % words` WHERE Name REGEXP '^b'") == "[('Bé',)]"
    known = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
    assert _said(world, known) == "[('Two % words',)]"
    assert _said(world, "SELECT DATABASE()") == "[('task',)]"


def test_what_is_written_is_in_the_state_and_a_refusal_is_not() -> None:
    world = _world()
    assert _said(world, "UPDATE `Two % words` SET Note = 'y' WHERE Name = 'ann'") == "[]"
    assert _said(world, "CREATE TABLE a (b INT)") == "[]"
    assert _said(world, "INSERT INTO a VALUES (1), (NULL)") == "[]"
    assert _said(world, "INSERT INTO nowhere VALUES (1)").startswith(
        "refused 1146: Table 'task.nowhere'"
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
def test_nobody_leaves_the_database_of_an_attempt(query: str) -> None:
    assert _said(_world(), query).startswith("refused")


def test_no_file_of_the_machine_is_read() -> None:
    assert _said(_world(), "SELECT LOAD_FILE('/etc/passwd')") == "[(None,)]"


def test_two_attempts_do_not_see_each_other_and_leave_nothing() -> None:
    first, second = _world(), _world()
    assert "attempt" not in _said(second, "SHOW DATABASES")
    assert _said(first, "DELETE FROM `Two % words`") == "[]"
    assert _said(second, "SELECT COUNT(*) FROM `Two % words`") == "[(2,)]"
    del first, second
    gc.collect()
    last = _world()
    names = [str(name) for (name,) in server().trusted("SHOW DATABASES")]
    assert [name for name in names if name.startswith("attempt")] == [last._database._name]  # type: ignore[attr-defined]


def test_a_statement_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "SILENCE_TIMEOUT_S", 0.3)
    world = _world()
    for endless in (
        "SELECT SLEEP(100)",
        "BEGIN NOT ATOMIC WHILE TRUE DO SET @a = 1; END WHILE; END",
    ):
        assert _said(world, endless).startswith("refused the statement took too long")
    assert _said(world, "SELECT COUNT(*) FROM `Two % words`") == "[(2,)]"


def test_more_rows_than_anybody_reads_are_not_read() -> None:
    world = _world()
    crowd = ", ".join(f"`Two % words` AS t{number}" for number in range(20))
    assert _said(world, f"SELECT t0.Name FROM {crowd}").endswith("[TRUNCATED]")
    assert _said(world, "SELECT COUNT(*) FROM `Two % words`") == "[(2,)]"


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("SET @drop = CONCAT('DROP DATABASE ', DATABASE()); PREPARE it FROM @drop; EXECUTE it", []),
        (
            "CREATE TABLE broken (a INT) ENGINE = MERGE UNION = (nowhere)",
            [TABLE, {"name": "broken", "columns": [], "rows": []}],
        ),
    ],
)
def test_what_an_agent_destroys_is_destroyed_and_no_failure_of_ours(
    statement: str, left: list[JsonObject]
) -> None:
    world = _world()
    for part in statement.split("; "):
        assert not _said(world, part).startswith("refused")
    assert world.state == {"tables": left}


def test_a_table_that_an_attempt_holds_for_ever_is_in_the_way_of_no_other() -> None:
    world = _world()
    for query in ("XA START 'x'", "DELETE FROM `Two % words`", "XA END 'x'", "XA PREPARE 'x'"):
        _said(world, query)
    del world
    gc.collect()
    started = time.monotonic()
    assert _world().state == {"tables": [TABLE]}
    assert time.monotonic() - started < mariadb_server.SILENCE_TIMEOUT_S
    assert _world().state == {"tables": [TABLE]}


def test_there_is_no_port_and_nothing_stays_when_its_process_is_killed() -> None:
    code = (
        "import sys\n"
        "from fumehood.benchmarks.dbbench.mariadb_server import server\n"
        "told = server().trusted('SELECT @@datadir, @@skip_networking, @@pid_file')\n"
        "print(*told[0], flush=True)\n"
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
    patience = time.monotonic() + 10
    while Path(data).parent.exists() and time.monotonic() < patience:
        time.sleep(0.02)
    assert not Path(data).parent.exists()
    assert not Path(f"/proc/{server_pid}").exists()


def test_a_server_that_died_is_replaced_for_the_next_attempt() -> None:
    world, first = _world(), server()
    ((pid_file,),) = first.trusted("SELECT @@pid_file")
    os.kill(int(Path(str(pid_file)).read_text(encoding="ascii")), signal.SIGKILL)
    assert _said(world, "SELECT 1").startswith("refused the statement took too long, or broke")
    patience = time.monotonic() + 10
    while first.alive and time.monotonic() < patience:
        time.sleep(0.02)
    with pytest.raises(InfraError, match="MariaDB is gone"):
        _said(world, "SELECT 1")
    assert _said(_world(), "SELECT COUNT(*) FROM `Two % words`") == "[(2,)]"
    assert not Path(str(pid_file)).parent.exists()


def test_without_a_server_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "_PATH", "/nowhere")
    with pytest.raises(InputError, match=r"apt-get install .*mariadb-server-core") as refusal:
        load_suite(f"dbbench:mariadb:{SAMPLE}")
    assert "\n" not in str(refusal.value)
