"""Tests of MARBLE's databases: each load leaves its evidence, and an agent can only read."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.marble import postgresql
from fumehood.benchmarks.marble.postgresql import LOADS
from fumehood.benchmarks.marble.scorer import score_causes
from fumehood.benchmarks.marble.team_result import MARK
from fumehood.benchmarks.marble.world_database import Database
from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, ToolCall, Value
from tests.parts.benchmark_data import benchmark_data
from tests.parts.marble import record, write_checkout
from tests.parts.postgresql import needs_postgresql
from tests.unit.benchmarks.scoring import play

needs_postgresql()

INIT_SQL = "CREATE TABLE users (id int); INSERT INTO users VALUES (1), (2);\nSELECT * FROM users;"
EVIDENCE = {
    "INSERT_LARGE_DATA": "SELECT 1 FROM pg_stat_statements "
    "WHERE query LIKE 'INSERT%' AND calls >= 100",
    "LOCK_CONTENTION": "SELECT 1 FROM pg_locks WHERE NOT granted",
    "VACUUM": "SELECT 1 FROM pg_stat_statements WHERE query LIKE 'VACUUM%' AND calls >= 50",
    "REDUNDANT_INDEX": "SELECT 1 FROM pg_indexes WHERE indexname LIKE 'index_table%' "
    "HAVING count(*) > 5",
    "FETCH_LARGE_DATA": "SELECT 1 FROM pg_stat_statements "
    "WHERE query LIKE 'SELECT * FROM %' AND rows >= 100000",
}


def database(*anomalies: str, init_sql: str = INIT_SQL) -> Database:
    loads: list[Any] = [{"anomaly": name} for name in anomalies]
    return Database({"init_sql": init_sql, "anomalies": loads})


def answer(world: Database, sql: str) -> JsonObject:
    result = world.call(ToolCall("query_db", {"sql": sql}))
    assert isinstance(result, Value), result
    return result.output


def complaint(world: Database, sql: str) -> str:
    result = world.call(ToolCall("query_db", {"sql": sql}))
    assert isinstance(result, Failure), result
    return result.message


@pytest.fixture(scope="module")
def quiet() -> Database:
    return database()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADS)
def test_a_load_leaves_the_evidence_of_its_cause_and_of_no_other(name: str) -> None:
    world = database(name)
    seen = {cause for cause, sql in EVIDENCE.items() if answer(world, sql)["rows"]}
    assert seen == {name}


@pytest.mark.slow
def test_two_loads_leave_the_evidence_of_both() -> None:
    world = database("LOCK_CONTENTION", "REDUNDANT_INDEX")
    seen = {cause for cause, sql in EVIDENCE.items() if answer(world, sql)["rows"]}
    assert seen == {"LOCK_CONTENTION", "REDUNDANT_INDEX"}


@pytest.mark.slow
def test_an_agent_reads_tables_and_statistics(quiet: Database) -> None:
    assert answer(quiet, "SELECT id, NULL AS empty FROM users;") == {
        "columns": ["id", "empty"],
        "rows": [["1", None], ["2", None]],
    }
    many = answer(quiet, "SELECT generate_series(1, 1000), repeat('x', 2000)")
    assert many["note"] == "There are more rows."
    assert len(json.dumps(many)) < 20_000


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("CREATE TABLE mine (id int)", "permission denied"),
        ("INSERT INTO users VALUES (3)", "permission denied"),
        ("CREATE TEMPORARY TABLE mine (id int)", "permission denied"),
        ("COPY users TO PROGRAM 'id'", "pg_execute_server_program"),
        ("SELECT pg_read_file('/etc/passwd')", "permission denied"),
        ("DO $$ BEGIN LOOP RAISE LOG 'x'; END LOOP; END $$", "permission denied for language"),
        ("SELECT lo_creat(1)", "permission denied"),
        ("SELECT pg_notify('a', 'b')", "permission denied"),
        ("SELECT pg_export_snapshot()", "permission denied"),
        ("SELECT 1; SELECT 2", "multiple commands"),
        ("SELECT nothing", 'column "nothing" does not exist'),
        ("SELECT repeat('x', 5000000)", "more than 1048576 bytes"),
    ],
)
def test_an_agent_can_only_read_one_small_result_at_a_time(
    quiet: Database, sql: str, reason: str
) -> None:
    answer(quiet, "SET default_transaction_read_only = off")
    assert reason in complaint(quiet, sql)
    assert answer(quiet, "SELECT count(*) FROM users")["rows"] == [["2"]]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("COPY t FROM PROGRAM 'id'", "pg_execute_server_program"),
        ("COPY t FROM '/etc/passwd'", "pg_read_server_files"),
        ("ALTER USER test SUPERUSER", "must be superuser"),
        (
            "CREATE FUNCTION f() RETURNS void LANGUAGE c AS '/lib/x86_64-linux-gnu/libc.so.6'",
            "permission denied for language c",
        ),
    ],
)
def test_statements_of_a_record_reach_nothing_outside_its_database(sql: str, reason: str) -> None:
    world = database(init_sql=f"CREATE TABLE t (line text); {sql}")
    with pytest.raises(InfraError, match=reason):
        world.query("SELECT 1")


def test_a_record_can_define_functions() -> None:
    function = "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 7; END $$"
    world = database(init_sql=f"{function}; CREATE TABLE t AS SELECT f() AS seven")
    assert answer(world, "SELECT seven FROM t")["rows"] == [["7"]]


def test_statements_leave_no_text_on_the_disk_that_has_no_limit(quiet: Database) -> None:
    def size_bytes() -> int:
        assert isinstance(quiet._server, postgresql.PostgreSqlServer)
        files = quiet._server.process.folder.rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file())

    answer(quiet, "SELECT 1")
    before = size_bytes()
    for _ in range(20):
        complaint(quiet, f"SELECT nothing, '{'x' * 1_000_000}'")
    assert size_bytes() - before < 5_000_000, "without a log of the failed statements"


@pytest.mark.slow
def test_an_endless_statement_ends_and_the_next_one_works(quiet: Database) -> None:
    assert "statement timeout" in complaint(quiet, "SELECT pg_sleep(60)")
    answer(quiet, "SET statement_timeout = 0")
    assert "timed out" in complaint(quiet, "SELECT pg_sleep(60)")
    assert answer(quiet, "SELECT 1")["rows"] == [["1"]]


@pytest.mark.slow
def test_the_server_ends_and_its_folder_is_removed_with_the_attempt() -> None:
    world = database()
    assert world._server is None, "it starts at the first call"
    answer(world, "SELECT 1")
    assert world._server is not None
    process = world._server.process
    del world
    gc.collect()
    assert not process.alive
    assert not process.folder.exists()


@pytest.mark.slow
def test_sessions_that_do_not_end_are_failed_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "READ_TIMEOUT_S", 1.0)
    world = database()
    # A server interrupts a calculation only between two rows.
    terms = " + ".join(["length((x * x)::text)"] * 900)
    endless = f"SELECT {terms} FROM (SELECT repeat('9', 65000)::numeric x OFFSET 0) numbers"
    for _ in range(8):
        assert complaint(world, endless)


@pytest.mark.slow
def test_statements_that_create_no_database_fail_in_one_line() -> None:
    world = database(init_sql="CREATE TABLE;\nnonsense")
    with pytest.raises(InfraError, match="the database cannot be created: ERROR: syntax error"):
        answer(world, "SELECT 1")


@pytest.mark.slow
def test_the_oracle_names_the_causes_of_published_records_and_the_no_op_does_not() -> None:
    path = benchmark_data("marble/database_first10.jsonl")
    cases = load_suite(f"marble:database:{path}").cases
    assert len(cases) == 10
    assert play(cases[0], cases[0].gold.oracle or ()).success is True
    assert play(cases[0], ({"submit": ""},)).success is False
    assert not any(play(case, ({"submit": f"{MARK} nothing"},)).success for case in cases)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Root causes: VACUUM, LOCK_CONTENTION", 1.0),
        ("I think so.\n**Root causes:** `lock_contention`, vacuum.", 1.0),
        ("Root cause: VACUUM", 0.5),
        ("Root causes: VACUUM, INSERT_LARGE_DATA", 0.5),
        ("Root causes: VACUUM, LOCK_CONTENTION, INSERT_LARGE_DATA", 0.0),
        ("Root causes: VACUUM and LOCK_CONTENTION", 0.0),
        ("Root causes: VACUUM\nRoot causes: INSERT_LARGE_DATA", 0.0),
        ("VACUUM, LOCK_CONTENTION", 0.0),
        ("", 0.0),
    ],
)
def test_the_last_line_of_causes_is_scored_by_the_share_of_right_names(
    text: str, share: float
) -> None:
    criterion: JsonObject = {
        "labels": ["INSERT_LARGE_DATA", "LOCK_CONTENTION", "VACUUM"],
        "root_causes": ["VACUUM", "LOCK_CONTENTION"],
        "names_max": 2,
    }
    success, metrics = score_causes(criterion, text)
    assert (success, metrics["task_completion"]) == (share == 1.0, share)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": {"content": ""}}, "task.root_causes: must be some of its labels"),
        (
            {"environment": {"anomalies": [{"anomaly": "FIRE"}]}},
            r"anomalies\[0\].anomaly: must be one of INSERT_LARGE_DATA",
        ),
        ({"environment": {"anomalies": [{"anomaly": "VACUUM", "ncolumn": 0}]}}, "ncolumn"),
    ],
)
def test_an_invalid_record_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    task = {"content": "", "labels": ["VACUUM"], "root_causes": ["VACUUM"]}
    folder = write_checkout(tmp_path, record("database", **{"task": task, **change}))
    with pytest.raises(InputError, match=reason) as caught:
        load_suite(f"marble:database:{folder}")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_missing_server_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    task = {"content": "", "labels": ["VACUUM"], "root_causes": ["VACUUM"]}
    folder = write_checkout(tmp_path, record("database", task=task))
    monkeypatch.setattr(postgresql, "SERVER_PATH", "/nowhere")
    monkeypatch.setattr(postgresql, "DEBIAN", Path("/nowhere"))
    with pytest.raises(InputError, match=r"PostgreSQL .* not installed; run: apt-get") as error:
        load_suite(f"marble:database:{folder}")
    assert "\n" not in str(error.value)
