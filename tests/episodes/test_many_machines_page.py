"""Runs the commands, the job script and the manifest of docs/many_machines.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.version import __version__
from tests.architecture.project import ROOT

PAGE = (ROOT / "docs" / "many_machines.md").read_text(encoding="utf-8")
EXPERIMENTS, SCRIPT = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [*re.findall(r"^\$ (fumehood .*)$", PAGE, re.MULTILINE), *EXPERIMENTS.splitlines()]
MANIFEST = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
EXPERIMENT = """format: fumehood.experiment/1
suites: [tasks.jsonl]
agents: [policy_aware, noop]
seed: 3
run: {engine: inline}
"""
TIMEOUT_S = 300

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with four tasks, an experiment, and the command on ``bin``."""
    sample = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
    (tmp_path / "tasks.jsonl").write_text("".join(sample.read_text().splitlines(keepends=True)[:4]))
    (tmp_path / "agents.yaml").write_text(EXPERIMENT)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "fumehood"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fumehood "$@"\n')
    command.chmod(0o755)
    return tmp_path


def shell(folder: Path, text: str, **variables: str) -> str:
    """Run lines of the page on four tasks of the suite, without boxes."""
    text = text.replace("run sample", "run tasks.jsonl --engine inline")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", text.replace("/runs/", "runs/")],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{text}: {done.stderr}"
    return done.stdout


def digest_in(text: str) -> str:
    (digest,) = re.findall(r"trace digest: (\w+)", text)
    return str(digest)


def test_the_commands_play_what_one_machine_plays(folder: Path) -> None:
    assert [command.split()[1] for command in COMMANDS] == [
        *("run", "run", "merge", "verify"),
        *("experiment", "experiment", "merge", "experiment"),
    ]
    printed = [shell(folder, command) for command in COMMANDS[:4]]
    one = shell(folder, "fumehood run sample -a policy_aware -a schema_repair --out runs/one")
    assert digest_in(printed[2]) == digest_in(one)
    assert printed[3].startswith("sound: 8 episodes")


@pytest.mark.release
def test_an_experiment_of_shards_has_the_results_of_one_machine(folder: Path) -> None:
    printed = [shell(folder, command) for command in COMMANDS[4:]]
    assert printed[0] == "runs/parts/1 is shard 1/2; when all are finished, run fumehood merge\n"
    one = shell(folder, "fumehood experiment agents.yaml --out runs/one")
    assert printed[3].replace("runs/merged", "runs/one") == one


def test_the_job_script_plays_and_continues_its_shard(folder: Path) -> None:
    array = {f"SLURM_ARRAY_TASK_{name}": "4" for name in ("ID", "COUNT")}
    array["SLURM_ARRAY_TASK_MIN"] = "1"
    first = shell(folder, SCRIPT, **array)
    assert digest_in(shell(folder, SCRIPT, **array)) == digest_in(first)
    assert [path.name for path in (folder / "runs" / "shards").iterdir()] == ["4"]


def test_the_manifest_is_valid_and_its_command_plays_a_shard(folder: Path) -> None:
    job: dict[str, Any] = yaml.safe_load(MANIFEST)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (script,) = container["args"]
    assert container["image"].endswith(f":{__version__}")
    assert f"auto/{job['spec']['completions']} " in script
    shell(folder, script, JOB_COMPLETION_INDEX="3")
    assert [path.name for path in (folder / "runs" / "shards").iterdir()] == ["3"]
    kubernetes = pytest.importorskip("kubernetes_validate")
    kubernetes.validate(job, "1.31", strict=True)
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate({**job, "spec": {**job["spec"], "completion": 4}}, "1.31", strict=True)
