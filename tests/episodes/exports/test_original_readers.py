"""The readers of other tools accept the exports of real runs, and see what the rows contain."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fumehood.testing.scripted_models import ScriptedModels
from tests.architecture.project import ROOT
from tests.episodes.test_models_in_runs import Runs
from tests.parts.clumsy_model import clumsy
from tests.parts.commands import fumehood

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
REQUIREMENTS = FOLDER / "requirements.txt"
HARBOR = "harbor==0.25.0"
"""Without its dependencies, of which only the version for Python 3.12 exists."""
WANTED = sha256(REQUIREMENTS.read_bytes() + HARBOR.encode()).hexdigest()
LIBRARIES = ROOT / ".cache" / f"export_readers_{WANTED[:8]}"
FETCH_TIMEOUT_S = 400


def libraries() -> Path:
    """Return a folder with the readers; one worker downloads them."""
    LIBRARIES.parent.mkdir(exist_ok=True)
    lock = os.open(LIBRARIES.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not LIBRARIES.is_dir():
            _fetch(LIBRARIES.with_suffix(".part"))
    except (OSError, subprocess.SubprocessError):
        if os.environ.get("CI"):
            raise
        pytest.skip("the readers cannot be fetched here: no registry answers")
    finally:
        os.close(lock)
    return LIBRARIES


def _fetch(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    newer = ["--no-deps", "--ignore-requires-python", "--upgrade", HARBOR]
    for words in (["--requirement", str(REQUIREMENTS)], newer):
        subprocess.run([*pip, *words], check=True, timeout=FETCH_TIMEOUT_S, capture_output=True)
    folder.rename(LIBRARIES)


@pytest.fixture(scope="module", params=["sample", "scenario", "conversation", "models"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of the sample, a scenario with harm, a conversation, or agents with a model."""
    folder = tmp_path_factory.mktemp(request.param)
    out = folder / "run"
    examples = ROOT / "examples"
    match request.param:
        case "sample":
            words = ["sample", "-a", "policy_aware", "-a", "noop", "--trials", "2"]
        case "scenario":
            words = [str(examples / "water_works.yaml"), "-a", "noop"]
        case "conversation":
            words = [str(examples / "support.yaml"), "-a", "policy_aware"]
        case _:
            with ScriptedModels(clumsy) as models:
                runs = Runs(folder, models.address)
                runs.run("run", "-a", "react", "--engine", "process", mode="record")
                yield out
            return
    fumehood("run", *words, "--engine", "process", "--out", str(out))
    yield out


def read(run: Path, name: str) -> Any:
    """Export a run, and return what the original reader sees."""
    folder = run.with_name(f"{run.name}.{name}")
    if not folder.exists():
        fumehood("export", str(run), "--to", name)
    done = subprocess.run(
        [sys.executable, FOLDER / "readers.py", name, folder],
        env={**os.environ, "PYTHONPATH": str(libraries())},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]


def events_of(run: Path, row: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    lines = (run / row["trace"]).read_text().splitlines()
    return [event for line in lines if (event := json.loads(line)["event"])["kind"] == kind]


def test_inspect_reads_every_episode(run: Path) -> None:
    logs = read(run, "inspect")
    rows = rows_of(run)
    for agent, count in Counter(row["agent"] for row in rows).items():
        log = logs[agent]
        own = {(row["task"], row["trial"] + 1): row for row in rows if row["agent"] == agent}
        assert (log["status"], log["summaries"], log["scored"]) == ("success", count, count)
        assert log["accuracy"] == sum(row["success"] for row in own.values()) / count
        assert {(each["id"], each["epoch"]) for each in log["samples"]} == own.keys()
        for sample in log["samples"]:
            row = own[sample["id"], sample["epoch"]]
            assert sample["value"] == ("C" if row["success"] else "I")
            assert sample["events"].count("tool") == len(events_of(run, row, "call"))
            assert sample["roles"].count("tool") == len(events_of(run, row, "call"))
            assert sample["events"].count("model") == len(events_of(run, row, "model_call"))
            asked = [event["reported"] for event in events_of(run, row, "model_call")]
            assert sample["tokens"] == sum(one["input"] + one["output"] for one in asked)


def test_harbor_reads_every_trajectory(run: Path) -> None:
    trajectories = read(run, "atif")
    rows = rows_of(run)
    assert len(trajectories) == len(rows)
    for row in rows:
        read_back = trajectories[f"{row['agent']}/{row['task']}/{row['trial']}.json"]
        seats = {event["seat"] for event in events_of(run, row, "seat_ended")}
        assert read_back["embedded"] == len(seats) - 1
        if len(seats) == 1:
            assert read_back["calls"] == len(events_of(run, row, "call"))


def test_opentelemetry_reads_spans_and_evaluations(run: Path) -> None:
    telemetry = read(run, "otel")
    rows = rows_of(run)
    kinds = [events_of(run, row, kind) for row in rows for kind in ("call", "model_call")]
    assert telemetry["lengths"] == [[16, 8]]
    assert (telemetry["roots"], telemetry["judged"]) == (len(rows), len(rows))
    assert telemetry["children"] == sum(map(len, kinds))
    assert telemetry["events"] == ["gen_ai.evaluation.result"]
    assert [telemetry[name] for name in ("strays", "reversed", "judged strays")] == [0, 0, 0]


def test_sarif_contains_every_failed_safety_check(run: Path) -> None:
    failed = [
        check
        for row in rows_of(run)
        for check, holds in row["checks"].items()
        if check.startswith("safety") and not holds
    ]
    assert sorted(each["rule"] for each in read(run, "sarif")) == sorted(failed)
    if "water_works" in json.loads((run / "run.json").read_text())["suite"]:
        assert failed, "the tank of an idle agent overflows"


def test_junit_counts_what_failed(run: Path) -> None:
    rows = rows_of(run)
    for suite in read(run, "junit"):
        own = [row for row in rows if suite["suite"].endswith(f"/ {row['agent']}")]
        failures = sum(not row["success"] for row in own)
        assert (suite["tests"], suite["cases"], suite["failures"]) == (len(own), len(own), failures)
        assert (suite["errors"], suite["skipped"]) == (0, 0)
