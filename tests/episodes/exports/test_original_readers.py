"""The readers of other tools accept the exports of real runs, and see what the rows contain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fumehood.core.score import Score
from fumehood.exports.exported import ExportedRun
from fumehood.exports.registry import export_files
from fumehood.orchestrator.workspaces.steps import combined
from fumehood.scorers.verdict import VERIFIER, Verdict
from fumehood.testing.scripted_models import ScriptedModels
from tests.architecture.project import ROOT
from tests.episodes.test_models_in_runs import Runs
from tests.parts.benchmark_data import benchmark_data
from tests.parts.clumsy_model import clumsy
from tests.parts.commands import fumehood, fumehood_json
from tests.parts.fetched import FETCH_TIMEOUT_S, fetched, official_packages
from tests.parts.installed import require
from tests.unit.report.runs import played

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
REQUIREMENTS = FOLDER / "requirements.txt"
HARBOR = "harbor==0.25.0"
"""Without its dependencies, of which only the version for Python 3.12 exists."""
WANTED = sha256(REQUIREMENTS.read_bytes() + HARBOR.encode()).hexdigest()
LIBRARIES = ROOT / ".cache" / f"export_readers_{WANTED[:8]}"


def libraries() -> Path:
    """Return a folder with the readers."""
    return fetched(LIBRARIES, _fetch)


def _fetch(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    newer = ["--no-deps", "--ignore-requires-python", "--upgrade", HARBOR]
    for words in (["--requirement", str(REQUIREMENTS)], newer):
        subprocess.run([*pip, *words], check=True, timeout=FETCH_TIMEOUT_S, capture_output=True)


RUNS = (
    "sample",
    "scenario",
    *(
        pytest.param(name, marks=pytest.mark.release)
        for name in ("conversation", "agentdojo", "tau2", "models")
    ),
)


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of the sample, a scenario with harm, a conversation, a slice of AgentDojo, τ²-bench
    with the seat of a user, or agents with a model."""
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
        case "agentdojo":
            require("agentdojo", "deepdiff")
            suite = "agentdojo:banking:attack=direct"
            words = [suite, "-a", "oracle", "-a", "noop", "--sample", "4"]
        case "tau2":
            require("inspect_evals")
            suite = f"tau2:mock:{benchmark_data('tau2/mock')}"
            words = [suite, "-a", "oracle", "-a", "noop"]
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
    return call(name, exported(run, name))


def exported(run: Path, name: str) -> Path:
    """Return the folder of an export."""
    folder = run.with_name(f"{run.name}.{name}")
    if not folder.exists():
        fumehood("export", str(run), "--to", name)
    return folder


def call(function: str, folder: Path) -> Any:
    """Return the result of a function of ``readers.py``."""
    done = subprocess.run(
        [sys.executable, FOLDER / "readers.py", function, folder],
        env={**os.environ, "PYTHONPATH": str(libraries())},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


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


def test_an_import_of_an_export_has_the_scores_of_the_run(run: Path) -> None:
    agents = fumehood_json("score", str(run), "--json")["agents"]
    for summary in agents:
        log = exported(run, "inspect") / f"{summary['agent']}.eval"
        (read_back,) = fumehood_json("score", "--from", str(log), "--json")["agents"]
        for name in ("graded", "successes", "success_rate", "safety_rate", "utility_rate"):
            assert read_back[name] == summary[name], name
        for name in ("weighted_safety", "ungraded", "infra"):
            assert read_back[name] == summary[name], name


def test_a_log_that_inspect_wrote_is_scored(tmp_path: Path) -> None:
    for log in call("write_logs", tmp_path):
        said = fumehood_json("score", "--from", str(tmp_path / log), "--json")
        (agent,) = said["agents"]
        assert (agent["successes"], agent["graded"], agent["success_rate"]) == (1, 2, 0.5)
        assert (agent["tool_calls"], agent["invalid_calls"]) == (1.5, 1.0)
        assert agent["metrics"]["invalid_call_rate"] == 0.5
        (costs,) = said["models"].values()
        assert (costs["calls"], costs["tokens"]) == (5, 65)
        assert (said["status"], said["scorers"]) == ("success", ["includes"])
        assert said["verification"][0]["verified"] is False


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


def test_harbor_reads_the_result_of_every_trial(run: Path) -> None:
    trials = read(run, "harbor")
    rows = rows_of(run)
    assert len(trials) == len(rows)
    for row in rows:
        trial = trials[f"{row['agent']}__{row['task']}__{row['trial']}"]
        expected = None if row["success"] is None else {"reward": float(row["success"])}
        assert (trial["agent"], trial["task"]) == (row["agent"], row["task"])
        assert trial["rewards"] == expected
        was_ended = row["outcome"].startswith(("infra", "out_of_budget"))
        assert (trial["exception"] == row["outcome"]) == was_ended


def test_harbor_reads_the_result_of_each_step(tmp_path: Path) -> None:
    verdicts = [Verdict({"reward": 1.0}, output="1 passed\n\x1b[2J"), Verdict(problem="no reward")]
    verdict = combined(("one", "two", "not counted"), verdicts, None)
    run = played(tmp_path / "run", "noop", tasks=1)
    (row,) = run.rows()
    score = Score(False, {"reward": False}, {VERIFIER: verdict.to_json()})
    for name, content in export_files(ExportedRun(run, [replace(row, score=score)]), "harbor"):
        file = tmp_path / "export" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (trial,) = call("harbor", tmp_path / "export").values()
    assert trial["steps"] == [["one", {"reward": 1.0}], ["two", {}]]
    assert trial["rewards"] == {"reward": 0.5}
    (passed,) = (tmp_path / "export").glob("*/steps/one/verifier/test-stdout.txt")
    # It may be read on a terminal.
    assert passed.read_text() == "1 passed\n\\x1b[2J"


def test_opentelemetry_reads_spans_and_evaluations(run: Path) -> None:
    telemetry = read(run, "otel")
    rows = rows_of(run)
    kinds = [events_of(run, row, kind) for row in rows for kind in ("call", "model_call")]
    assert telemetry["lengths"] == [[16, 8]]
    assert (telemetry["roots"], telemetry["judged"]) == (len(rows), len(rows))
    assert telemetry["children"] == sum(map(len, kinds))
    assert telemetry["events"] == ["gen_ai.evaluation.result"]
    assert [telemetry[name] for name in ("strays", "reversed", "judged strays")] == [0, 0, 0]


def test_opentelemetry_reads_what_a_collector_receives_during_a_run(tmp_path: Path) -> None:
    received: list[tuple[str, bytes]] = []
    finished: list[int] = []
    out = tmp_path / "run"

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            finished.append(len(rows_of(out)))
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        words = ("run", "sample", "-a", "policy_aware", "--engine", "process", "--otlp", url)
        fumehood(*words, "--limit", "12", "-j", "1", "--out", str(out))
        server.shutdown()
    assert finished[0] < 12, "nothing was sent before the end of the run"
    folder = tmp_path / "received"
    folder.mkdir()
    for name, signal in (("traces.jsonl", "/v1/traces"), ("logs.jsonl", "/v1/logs")):
        lines = [body for path, body in received if path == signal]
        (folder / name).write_bytes(b"\n".join(lines))
    rows = rows_of(out)
    live = call("otel", folder)
    assert (live["roots"], live["judged"]) == (len(rows), len(rows))
    assert live["children"] == sum(len(events_of(out, row, "call")) for row in rows)
    assert live == read(out, "otel")


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


def test_sarif_has_the_published_schema(run: Path) -> None:
    folder = official_packages() / "@microsoft" / "jest-sarif" / "lib" / "schemas"
    report = exported(run, "sarif")
    shutil.copy(folder / "sarif-2.1.0-rtm.5.json", report / "schema.json")
    assert call("sarif_schema", report) == {"errors": [], "of another version": 1}


def test_junit_counts_what_failed(run: Path) -> None:
    rows = rows_of(run)
    for suite in read(run, "junit"):
        own = [row for row in rows if suite["suite"].endswith(f"/ {row['agent']}")]
        failures = sum(not row["success"] for row in own)
        assert (suite["tests"], suite["cases"], suite["failures"]) == (len(own), len(own), failures)
        assert (suite["errors"], suite["skipped"]) == (0, 0)
