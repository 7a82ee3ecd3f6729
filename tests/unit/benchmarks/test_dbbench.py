"""Tests of dbbench: its gold solves every task, and incomplete solutions do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.dbbench import mariadb_server, tasks
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.task import Case
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_data import SAMPLES, benchmark_data

SAMPLE = SAMPLES / "dbbench.jsonl"
NO_OP: tuple[Move, ...] = ({"submit": ""},)


def _solves(case: Case, moves: tuple[Move, ...] | None) -> bool | None:
    assert moves is not None
    return score_evidence(case.task, case.gold, play_in_memory(case.task, moves)).success


def _cases(path: Path = SAMPLE) -> tuple[Case, ...]:
    return load_suite(f"dbbench:sqlite:{path}").cases


@pytest.mark.slow
def test_the_oracle_solves_every_task_and_the_no_op_none() -> None:
    for case in _cases():
        assert _solves(case, case.gold.oracle) is True
        assert _solves(case, NO_OP) is False


def test_a_change_without_its_last_statement_fails() -> None:
    changes = [case for case in _cases() if case.task.tags["type"] in ("INSERT", "UPDATE")]
    for case in changes:
        assert case.gold.oracle is not None
        assert _solves(case, (*case.gold.oracle[:-2], {"submit": "done"})) is False


def test_a_change_requires_a_submitted_answer() -> None:
    case = _cases()[2]
    assert case.gold.oracle is not None
    assert _solves(case, (*case.gold.oracle[:-1], {"give_up": "unsure"})) is False


def test_additional_tables_are_ignored() -> None:
    case = _cases()[2]
    create: Move = {"tool_name": "execute_sql", "args": {"query": "CREATE TABLE notes (a TEXT)"}}
    assert _solves(case, (create, *(case.gold.oracle or ()))) is True


def test_a_dropped_table_fails() -> None:
    case = _cases()[3]
    drop: Move = {
        "tool_name": "execute_sql",
        "args": {"query": "DROP TABLE `Lighthouses of Norrow`"},
    }
    assert _solves(case, (*(case.gold.oracle or ())[:-1], drop, {"submit": "done"})) is False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"label": []}, "label"),
        ({"type": ["INSERT"]}, "answer_md5: is required"),
        (
            {
                "table": {
                    "table_name": "t",
                    "table_info": {"columns": [{"name": "a"}], "rows": [[1, 2]]},
                }
            },
            "rows",
        ),
    ],
)
def test_an_invalid_record_is_rejected_with_its_line(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    first = json.loads(SAMPLE.read_text(encoding="utf-8").splitlines()[0])
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({**first, **change}), encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.jsonl:1: .*" + reason) as error:
        load_suite(f"dbbench:{bad}")
    assert "\n" not in str(error.value)


def test_mariadb_is_the_default_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "mariadbd", lambda: Path("/usr/sbin/mariadbd"))
    monkeypatch.setattr(tasks, "mariadbd", lambda: Path("/usr/sbin/mariadbd"))
    suite = load_suite(f"dbbench:{SAMPLE}")
    assert suite.name == "dbbench:mariadb:dbbench"
    assert suite.about is not None
    assert suite.about.scored_on.endswith("on MariaDB with MySQL 8's strict mode")


def test_sqlite_is_used_without_mariadb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_server, "SERVER_PATH", "/nowhere")
    suite = load_suite(f"dbbench:{SAMPLE}")
    assert suite.name == "dbbench:sqlite:dbbench"
    assert suite.about is not None
    assert suite.about.scored_on.endswith("on SQLite as MySQL")


def test_splits_are_found_in_a_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "dbbench"
    folder.mkdir(parents=True)
    (folder / "dev.jsonl").write_bytes(SAMPLE.read_bytes())
    for argument in (f"dbbench:{tmp_path}", f"dbbench:{tmp_path}:dev", f"dbbench:{folder}"):
        assert [case.task.task_id for case in load_suite(argument).cases][-1] == "dev-4"
    with pytest.raises(InputError, match=r"contains none of .*standard\.jsonl"):
        load_suite(f"dbbench:{tmp_path}:standard")


@pytest.mark.slow
def test_the_layout_of_the_published_checkout_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "AgentBench" / "data" / "dbbench"
    folder.mkdir(parents=True)
    (folder / "dev.jsonl").write_bytes(SAMPLE.read_bytes())
    (folder / "standard.jsonl").write_bytes(SAMPLE.read_bytes() * 60)
    checkout = tmp_path / "AgentBench"
    for argument in (checkout, f"{checkout}:standard", folder / "standard.jsonl"):
        names = [case.task.task_id for case in load_suite(f"dbbench:{argument}").cases]
        assert (len(names), names[-1]) == (300, "standard-299")


@pytest.mark.slow
def test_gold_solves_the_published_dev_split() -> None:
    cases = _cases(benchmark_data("agentbench-dbbench/dev.jsonl"))
    changes = [case for case in cases if case.task.tags["type"] in ("INSERT", "UPDATE")]
    questions = [case for case in cases if case not in changes]
    assert (len(changes), len(questions)) == (40, 20)
    assert sum(_solves(case, case.gold.oracle) is True for case in changes) == 40
    assert sum(_solves(case, case.gold.oracle) is True for case in questions) == 20
    assert sum(_solves(case, NO_OP) is True for case in cases) == 0
