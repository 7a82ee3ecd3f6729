"""The same seed gives the same trace digest on every engine and with any number of services."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.benchmarks.native.records import record_to_json
from fumehood.benchmarks.native.suite_file import STARTER, read_suite_file

SAMPLE = Path(__file__).parents[2] / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
SCENARIO = Path(__file__).parents[2] / "examples" / "water_works.yaml"
EVERY = 5

ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("docker/runsc", marks=[pytest.mark.runsc, pytest.mark.image, pytest.mark.slow]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("inline"),
    pytest.param("process"),
]


@pytest.fixture(scope="module")
def some_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()[::EVERY]
    tasks = [*read_suite_file(STARTER), *read_suite_file(SCENARIO)]
    lines += [json.dumps(record_to_json(task.value)) for task in tasks]
    path = tmp_path_factory.mktemp("suite") / "some.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _run(tasks: Path, out: Path, engine: str, workers: int) -> dict[str, object]:
    agents = ["-a", "policy_aware", "-a", "instruction_parser", "-a", "oracle"]
    name, _, runtime = engine.partition("/")
    command = [sys.executable, "-m", "fumehood", "run", str(tasks), *agents, "--engine", name]
    command += ["--runtime", runtime] if runtime else []
    options = [
        "--service-workers",
        str(workers),
        "-j",
        "4",
        "--seed",
        "7",
        "--out",
        str(out),
        "--json",
    ]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.fixture(scope="module")
def digest(some_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return the digest of a reference run."""
    report = _run(some_tasks, tmp_path_factory.mktemp("first") / "run", "process", 2)
    assert report["infra"] == 0
    return report["trace_digest"]


@pytest.mark.parametrize("workers", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ENGINES)
def test_two_runs_of_one_seed_have_the_same_digest(
    engine: str, workers: int, some_tasks: Path, digest: object, tmp_path: Path
) -> None:
    report = _run(some_tasks, tmp_path / "run", engine, workers)
    assert report["infra"] == 0
    assert report["trace_digest"] == digest


@pytest.mark.slow
def test_another_seed_gives_another_digest(
    some_tasks: Path, digest: object, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "fumehood", "run", str(some_tasks), "-a", "policy_aware"]
    options = ["--engine", "process", "--seed", "8", "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=300, check=True
    )
    assert json.loads(done.stdout)["trace_digest"] != digest
