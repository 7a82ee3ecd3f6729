"""The suite argument of the command line, and its one-line errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.registry import (
    BENCHMARKS,
    RECOGNISING,
    Benchmark,
    RecognisesRecords,
    load_suite,
)
from fumehood.benchmarks.sample.tasks import TASKS
from fumehood.benchmarks.toolmisuse.tasks import SHA256_BY_PUBLISHED_PATH
from fumehood.core.errors import InputError
from tests.golden import golden_sample

PUBLISHED: dict[str, Any] = {
    "task_id": "t1",
    "split": "dev",
    "difficulty": "easy",
    "domain": "files",
    "instruction": "Write 'x' to /a.txt.",
    "toolset_id": "files_v1",
    "initial_state": {"files": {}},
    "success_criteria": [
        {"op": "map_value_equals", "path": "files", "key": "/a.txt", "value": "x"}
    ],
    "budget": {"max_steps": 3, "max_tool_calls": 3, "max_retries": 1, "timeout_ms": 100},
}

FOLDERS = golden_sample("toolmisusebench/loader/cases")


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_every_registered_benchmark_can_be_constructed(name: str) -> None:
    benchmark: Benchmark = BENCHMARKS.load(name)()
    assert benchmark.source


def test_an_exception_of_an_installed_benchmark_is_one_line_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fumehood.benchmarks]\nbroken = broken_tasks:Broken\n")
    (tmp_path / "broken_tasks.py").write_text(
        "class Broken:\n    def load(self, argument):\n        return {}[argument]\n"
        "    def recognises(self, record):\n        return record['format']\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="installed benchmark 'broken' raised KeyError: 'dev'"):
        load_suite("broken:dev")
    (tmp_path / "unknown.json").write_text('[{"question": "?"}]')
    with pytest.raises(InputError, match=r"use NAME.*; the installed broken failed \(KeyError"):
        load_suite(str(tmp_path / "unknown.json"))


def test_a_name_alone_is_a_suite() -> None:
    suite = load_suite("sample")
    assert suite.name == "sample"
    assert len(suite.cases) == 40


def test_a_split_of_a_folder_is_a_suite() -> None:
    suite = load_suite(f"toolmisuse:{FOLDERS / 'split_dirs'}:test_public")
    assert suite.name == "toolmisuse:test_public"
    assert [case.task.task_id for case in suite.cases] == ["c1", "c2", "c3"]
    assert {case.gold.scorer for case in suite.cases} == {"toolmisuse"}


def test_every_benchmark_of_this_package_that_recognises_records_is_asked() -> None:
    recognise = {
        name
        for name, create in BENCHMARKS.working(BENCHMARKS.table)
        if isinstance(create(), RecognisesRecords)
    }
    assert recognise == {*RECOGNISING}


def test_the_benchmark_that_recognises_the_first_record_loads_a_path(tmp_path: Path) -> None:
    shutil.copy(TASKS, tmp_path / "mine.jsonl")
    native = load_suite(str(tmp_path / "mine.jsonl"))
    assert (native.name, len(native.cases)) == ("mine", 40)
    assert load_suite(str(tmp_path)).cases == native.cases
    published = load_suite(f"{FOLDERS / 'split_dirs'}:dev")
    assert [case.task.task_id for case in published.cases] == ["b1"]


def test_one_file_of_published_records_needs_no_split(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "mine.jsonl", PUBLISHED, {**PUBLISHED, "task_id": "t2", "split": "train"}
    )
    assert len(load_suite(f"toolmisuse:{file}").cases) == 2
    assert len(load_suite(f"toolmisuse:{file}:train").cases) == 1


def test_a_path_may_contain_colons(tmp_path: Path) -> None:
    file = _write(tmp_path / "a:dev", PUBLISHED)
    assert load_suite(str(file)).cases == load_suite(f"toolmisuse:{file}").cases


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("sampel", "no benchmark is called 'sampel'; did you mean 'sample'?"),
        ("sample:x", "sample takes no argument; remove 'x'"),
        ("toolmisuse", "toolmisuse requires a path: toolmisuse:PATH or toolmisuse:PATH:SPLIT"),
        ("native", "native requires a path: native:PATH or native:FOLDER:SPLIT"),
        (f"native:{TASKS.parent}:dev", "sample/dev.jsonl: there is no such file"),
        ("native:nowhere.jsonl", "nowhere.jsonl: there is no such file"),
        (
            "nowhere/tasks.jsonl",
            "there is neither a file or folder nor a benchmark named 'nowhere/tasks.jsonl'",
        ),
        (f"toolmisuse:{FOLDERS / 'flat_files'}:tset", "there is no split 'tset'; "),
        (f"toolmisuse:{FOLDERS / 'flat_files'}", "name a split: toolmisuse:"),
        (str(FOLDERS.parent / "records.sample.jsonl"), "no benchmark recognises this format"),
        ("toolmisuse:nowhere:dev", "nowhere: there is no such folder"),
    ],
)
def test_an_invalid_argument_gives_one_line_of_error(argument: str, line: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_suite(argument)
    assert line in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_error_in_a_json_list_names_the_item(tmp_path: Path) -> None:
    good = json.loads(TASKS.read_text().splitlines()[0])
    bad = {**good, "task_id": "t2", "safety": [{"op": "unchanged", "path": 5}]}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps([good, bad]))
    with pytest.raises(InputError) as refusal:
        load_suite(str(file))
    reason = "safety[0].path: must be a list, such as [5]"
    assert str(refusal.value) == f"{file}[1]: {reason}"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"domain": "mixed"}, "domain: 'mixed' is a label of the format; no world serves it"),
        ({"initial_state": {"files": 3}}, "initial_state.files: must be an object"),
        (
            {"fault_plan": [{"fault_type": "timeout", "trigger": {"prob": {}}}]},
            "fault_plan[0].trigger.prob.p: must be a number",
        ),
        (
            {
                "fault_plan": [
                    {"fault_type": "timeout", "trigger": {}, "payload": {"timeout_ms": None}}
                ]
            },
            "fault_plan[0].payload.timeout_ms: must be a whole number",
        ),
        (
            {"success_criteria": [{"op": "exists", "path": "files"}, {"op": "exists", "path": 3}]},
            "success_criteria[1].path: must be a string, not 3",
        ),
        (
            {
                "success_criteria": [
                    {"op": "tool_output_path_exists", "tool_name": "x", "output_path": None}
                ]
            },
            "success_criteria[0].output_path: must be a string, not None",
        ),
    ],
)
def test_records_that_crash_the_reference_later_are_refused_on_loading(
    tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    file = _write(tmp_path / "mine.jsonl", PUBLISHED, {**PUBLISHED, "task_id": "t2", **change})
    with pytest.raises(InputError) as refusal:
        load_suite(f"toolmisuse:{file}")
    assert str(refusal.value).startswith(f"{file}:2: ")
    assert line in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1, "a": 2}', "is not JSON: the key 'a' occurs twice"),
        ('{"a": 1e999}', "is not JSON: 1e999 is too large for a number"),
        ('{"a": "\\ud800"}', "is not JSON: a string contains a lone surrogate"),
        ("[" * 300 + "]" * 300, "is nested more than 100 levels deep"),
        ("[" * 101 + "]" * 101, "is nested more than 100 levels deep"),
        ("[" * 100_000 + "]" * 100_000, "is nested too deeply"),
    ],
)
def test_ambiguous_json_is_refused(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(f"\n{text}\n")
    with pytest.raises(InputError) as refusal:
        load_suite(f"toolmisuse:{file}")
    assert str(refusal.value) == f"{file}:2: {line}"


def test_surrogate_pairs_are_accepted(tmp_path: Path) -> None:
    file = _write(tmp_path / "mine.jsonl", {**PUBLISHED, "instruction": "\N{GRINNING FACE}"})
    assert "\\ud83d" in file.read_text()
    assert (
        load_suite(f"toolmisuse:{file}").cases[0].task.seats[0].instruction == "\N{GRINNING FACE}"
    )


@pytest.mark.parametrize("name", SHA256_BY_PUBLISHED_PATH)
def test_a_file_with_a_published_name_must_have_the_published_digest(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir()
    _write(file, PUBLISHED)
    for argument in (f"toolmisuse:{file}", f"toolmisuse:{file.parent}:dev"):
        with pytest.raises(InputError, match="is not the published v0_2_large/"):
            load_suite(argument)
    file.rename(tmp_path / "mine.jsonl")
    assert len(load_suite(f"toolmisuse:{tmp_path / 'mine.jsonl'}").cases) == 1


def _write(file: Path, *records: dict[str, Any]) -> Path:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return file
