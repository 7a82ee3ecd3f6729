"""A suite can be YAML, JSON, or a folder with one file per task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.benchmarks.native.suite_file import STARTER
from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.task import Case
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood, fumehood_json

DOCUMENT: dict[str, Any] = yaml.safe_load(STARTER.read_text("utf-8"))


def _cases(path: Path) -> dict[str, Case]:
    return {case.task.task_id: case for case in load_suite(str(path)).cases}


def _without_domain(path: Path) -> dict[str, Any]:
    return {
        name: (case.gold, case.task.initial_state, case.task.seats, case.task.policy)
        for name, case in _cases(path).items()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The starter suite as a folder; the name of a file is the ID of its task."""
    folder = tmp_path / "garden"
    folder.mkdir()
    tasks = [dict(task) for task in DOCUMENT["tasks"]]
    shared = {key: value for key, value in DOCUMENT.items() if key != "tasks"}
    (folder / "suite.yaml").write_text(yaml.safe_dump(shared, sort_keys=False))
    for index, task in enumerate(tasks):
        name = task.pop("task_id")
        if index:
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
        else:
            (folder / f"{name}.json").write_text(json.dumps(task, indent=1))
    return folder


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    """The starter suite as one file."""
    path = tmp_path / "starter.yaml"
    path.write_bytes(STARTER.read_bytes())
    return path


def test_a_folder_means_the_same_as_one_file(folder: Path, starter: Path) -> None:
    assert _without_domain(folder) == _without_domain(starter)
    assert {case.task.tags["domain"] for case in _cases(folder).values()} == {"garden"}


def test_json_means_the_same_as_yaml(tmp_path: Path, starter: Path) -> None:
    path = tmp_path / "suite as.json"
    path.write_text(json.dumps(DOCUMENT, indent="\t"))
    assert _without_domain(path) == _without_domain(starter)


def test_complete_tasks_in_yaml_are_a_suite(tmp_path: Path) -> None:
    example = ROOT / "examples" / "tasks.json"
    records, expected = json.loads(example.read_text()), _without_domain(example)
    listed = tmp_path / "tasks.yaml"
    listed.write_text(yaml.safe_dump(records))
    assert _without_domain(listed) == expected
    parts = tmp_path / "parts"
    parts.mkdir()
    for record in records:
        (parts / f"{record['task_id']}.yaml").write_text(yaml.safe_dump(record))
    assert _without_domain(parts) == expected


@pytest.mark.slow
def test_commands_accept_a_folder(folder: Path, tmp_path: Path) -> None:
    assert fumehood_json("suite", "validate", str(folder), "--json")["mistakes"] == []
    run = str(tmp_path / "run")
    fumehood("run", str(folder), "--agent", "oracle", "--engine", "inline", "--out", run)
    assert fumehood_json("show", run, "--json")[0]["success"] is True


def _mistake(folder: Path, name: str, old: str, new: str) -> str:
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as refusal:
        load_suite(str(folder))
    assert "\n" not in str(refusal.value)
    return str(refusal.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("suite.yaml", "budget:", "budgets:", "budgets: is not a known key; did you mean"),
        ("suite.yaml", "format:", "tasks: []\nformat:", "tasks: must be absent: each task is a"),
        ("order-basil.yaml", "instruction:", "instructions:", "instructions: is not a known key"),
        ("order-basil.yaml", "instruction:", "world: crud\ninstruction:", "world: is stated once"),
    ],
)
def test_a_mistake_names_its_file_and_line(
    folder: Path, name: str, old: str, new: str, message: str
) -> None:
    text = (folder / name).read_text()
    line = 1 + text[: text.index(old)].count("\n")
    assert _mistake(folder, name, old, new).startswith(f"{name}:{line}: {message}")


def test_a_folder_without_tasks_states_how_to_add_one(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "suite.yaml":
            path.unlink()
    with pytest.raises(InputError, match="contains no task: write one file per task beside it"):
        load_suite(str(folder))


def test_two_tasks_with_one_id_are_refused(folder: Path) -> None:
    (folder / "again.yaml").write_text(
        "task_id: order-basil\n" + (folder / "order-basil.yaml").read_text()
    )
    with pytest.raises(InputError, match=r"'order-basil' is already used at .*again.yaml:1"):
        load_suite(str(folder))


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_mistake_of_the_shared_policy_is_named_once_at_its_line(
    folder: Path, starter: Path, *, is_folder: bool
) -> None:
    path = folder / "suite.yaml" if is_folder else starter
    rule = "{name: one, rule: forbid, calls: [{tool_name: no_such_tool}]}"
    path.write_text(f"policy:\n  rules:\n    - {rule}\n{path.read_text()}")
    with pytest.raises(InputError) as refusal:
        load_suite(str(folder if is_folder else starter))
    assert str(refusal.value).startswith(f"{path}:3: policy.rules[0].calls[0].tool_name")
    assert "and" not in str(refusal.value).partition("tool_name")[0].removeprefix(str(path))


@pytest.mark.parametrize("name", ["suite.json", "more.jsonl", "task.YAML"])
def test_a_file_that_would_not_be_read_is_refused(name: str, folder: Path) -> None:
    (folder / name).write_text("{}")
    with pytest.raises(InputError, match=f"{name}: is not read: beside suite.yaml"):
        load_suite(str(folder))
