"""The same seed gives the same trace digest on every engine and with any number of services."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.native.records import record_to_json
from fumehood.benchmarks.native.suite_file import STARTER, read_suite_file
from fumehood.layers.faults.registry import FAMILIES
from tests.parts.commands import fumehood_json
from tests.parts.shared_folders import made_once

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).parents[2] / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
EXAMPLES = Path(__file__).parents[2] / "examples"
EVERY = 5
PAYLOADS: dict[str, Any] = {
    "outage": {"start_s": 100, "duration_s": 9000},
    "schema_change": {"rename_args": {"text": "entry"}},
    "schema_drift": {"rename_args": {"text": "entry"}},
    "wrong_value": {"path": "now", "value": "never"},
}
"""Payloads with which a family fires in the scenario, where its example does not."""

ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param("docker/runsc", marks=[pytest.mark.runsc, pytest.mark.image, pytest.mark.release]),
    pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.image]),
    pytest.param("oci/runsc", marks=[pytest.mark.runsc, pytest.mark.oci, pytest.mark.release]),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("inline"),
    # The reference is a run on the same engine, with two services.
    pytest.param("process", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def some_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()[::EVERY]
    files = (
        STARTER,
        EXAMPLES / "water_works.yaml",
        EXAMPLES / "support.yaml",
        EXAMPLES / "payments.yaml",
    )
    records = [record_to_json(task.value) for file in files for task in read_suite_file(file)]
    (scenario,) = (record for record in records if record["task_id"] == "night-shift")
    records += [_with_fault(scenario, family) for family in FAMILIES.names()]
    lines += [json.dumps(record) for record in records]
    path = tmp_path_factory.mktemp("suite") / "some.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


LOOKS = [
    {"tool_name": "read_tank", "args": {"tank_id": "t1"}},
    {"tool_name": "wait", "args": {"seconds": 900}},
    {"tool_name": "read_tank", "args": {"tank_id": "t1"}},
]
"""The second look differs from the first, so that a stale read is one."""


def _with_fault(record: dict[str, Any], family: str) -> dict[str, Any]:
    payload = PAYLOADS.get(family, FAMILIES.load(family).example)
    fault = {"family": family, "trigger": {"prob": 0.9}, "payload": payload}
    moves = [*LOOKS, *record["oracle"]]
    return {
        **record,
        "task_id": f"night-shift-{family}",
        "fault_plan": [fault],
        "oracle": moves,
    }


def _run(tasks: Path, out: Path, engine: str, workers: int) -> dict[str, object]:
    agents = ["-a", "policy_aware", "-a", "instruction_parser", "-a", "oracle"]
    name, _, runtime = engine.partition("/")
    report: dict[str, object] = fumehood_json(
        *("run", str(tasks), *agents, "--engine", name),
        *(("--runtime", runtime) if runtime else ()),
        *("--service-workers", str(workers), "-j", "4", "--seed", "7"),
        *("--out", str(out), "--json"),
    )
    return report


@pytest.fixture(scope="module")
def reference(some_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, object]:
    """Return the folder of a reference run, and its digest."""

    def play(folder: Path) -> None:
        report = _run(some_tasks, folder / "run", "process", 2)
        assert report["infra"] == 0
        (folder / "digest").write_text(str(report["trace_digest"]))

    folder = made_once(tmp_path_factory, "reference of digests", play)
    return folder / "run", (folder / "digest").read_text()


@pytest.fixture(scope="module")
def digest(reference: tuple[Path, object]) -> object:
    """Return the digest of the reference run."""
    return reference[1]


def test_every_fault_family_fires_in_the_run(reference: tuple[Path, object]) -> None:
    lines = (reference[0] / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    fired = {row["metrics"]["primary_fault"] for row in rows if row["metrics"]["faults_fired"]}
    assert fired >= set(FAMILIES.names())


@pytest.mark.parametrize("workers", [4, pytest.param(1, marks=pytest.mark.release)])
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
    options = ("--engine", "process", "--seed", "8", "--out", str(tmp_path / "run"), "--json")
    report = fumehood_json("run", str(some_tasks), "-a", "policy_aware", *options)
    assert report["trace_digest"] != digest
