"""docs/run_folder.md describes every field of run folders and JSON outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.outcome import InfraKind, RefusalKind
from tests.architecture.project import ROOT
from tests.parts.commands import run_fumehood

PAGE = (ROOT / "docs" / "run_folder.md").read_text(encoding="utf-8")
TASKS = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"

OWN_WORDS = frozenset(
    {"config", "initial_state", "final_state", "criteria", "oracle", "tags", "payload", "trigger"}
)
OWN_WORDS |= {
    "arguments",
    "output",
    "checks",
    "metrics",
    "outcomes",
    "arguments_after",
    "details",
    "by_fault",
    "by_domain",
}
"""Fields whose content is defined by a task, an agent or another page."""


def _fumehood(*words: str) -> str:
    done = run_fumehood(*words, cwd=ROOT, timeout_s=120)
    assert done.stdout, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of two agents on two tasks, one of which has faults."""
    folder = tmp_path_factory.mktemp("run")
    lines = TASKS.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "two.jsonl").write_text("".join(lines[:2]), encoding="utf-8")
    agents = ("--agent", "policy_aware", "--agent", "schema_repair")
    _fumehood(
        "run",
        str(folder / "two.jsonl"),
        *agents,
        "--engine",
        "process",
        "--out",
        str(folder / "run"),
    )
    return folder / "run"


def _fields(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in OWN_WORDS:
                yield from _fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner)


def _undescribed(*values: Any) -> list[str]:
    return sorted({name for value in values for name in _fields(value) if f"`{name}`" not in PAGE})


@pytest.mark.slow
def test_every_file_of_a_run_is_described(run_dir: Path) -> None:
    rows = [json.loads(line) for line in (run_dir / "episodes.jsonl").read_text().splitlines()]
    tasks = [json.loads(line) for line in (run_dir / "suite.jsonl").read_text().splitlines()]
    traces = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in run_dir.rglob("traces/*/*")
    ]
    assert len(rows) == len(traces) == 4
    assert _undescribed(json.loads((run_dir / "run.json").read_text()), rows, tasks, traces) == []
    assert all(path.name in PAGE for path in run_dir.iterdir() if path.is_file())


@pytest.mark.parametrize(
    "words", [("score",), ("resume",), ("show",), ("show", "policy_aware/crud_gold")], ids=" ".join
)
def test_the_json_of_a_command_about_a_run_is_described(
    run_dir: Path, words: tuple[str, ...]
) -> None:
    command, *rest = words
    assert _undescribed(json.loads(_fumehood(command, str(run_dir), *rest, "--json"))) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "doctor"])
def test_the_json_of_a_command_about_this_machine_is_described(command: str) -> None:
    assert _undescribed(json.loads(_fumehood(command, "--json"))) == []


def test_every_refusal_and_infra_kind_is_described() -> None:
    words = {kind.value for kind in RefusalKind} | {kind.value for kind in InfraKind}
    assert [word for word in sorted(words) if f"`{word}`" not in PAGE] == []
