"""Whole runs with models: scaffolds against a scripted provider, recorded, replayed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fumehood.testing.scripted_models import ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.architecture.project import ROOT
from tests.parts.clumsy_model import clumsy
from tests.parts.commands import fumehood, fumehood_json, run_fumehood
from tests.parts.models import KEY
from tests.parts.ray_machines import NEEDS_RAY

TASKS = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
MODEL = "m-cheap"
MODEL_CALLS = {"react": 3, "react_text": 3, "plan_act": 4, "code": 3, "single_shot": 1}
"""Scaffold → how often it asks the clumsy model."""
EVERY = [word for scaffold in MODEL_CALLS for word in ("-a", scaffold)]


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedModels]:
    with ScriptedModels(clumsy) as models:
        yield models


class Runs:
    """Runs of the command, each in a separate folder."""

    first: Any
    """What the run of every scaffold said."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self._address = address

    def run(
        self, name: str, *words: str, key: str = KEY, suite: Path | None = None, **models: Any
    ) -> Any:
        prices = self.folder / "prices.yaml"
        prices.write_text(
            yaml.safe_dump({"m-*": {"input_usd_per_mtok": 1, "output_usd_per_mtok": 2}})
        )
        provider = {"name": "scripted", "address": self._address, "key_env": "SCRIPTED_KEY"}
        config = {"models": {"providers": [provider], "prices": str(prices), **models}}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config))
        tasks = self.folder / "tasks.jsonl"
        tasks.write_text("".join(TASKS.read_text().splitlines(keepends=True)[:2]))
        model = () if "policy_aware" in words else ("--model", MODEL)
        done = run_fumehood(
            *("run", str(suite or tasks), "--config", str(path), "--json"),
            *(*model, "--out", str(self.folder / name), *words),
            cwd=ROOT,
            env={**os.environ, "SCRIPTED_KEY": key},
            timeout_s=120,
        )
        return json.loads(done.stdout) if done.stdout else done.stderr

    def events(self, name: str, kind: str, agent: str = "*") -> list[dict[str, Any]]:
        paths = sorted((self.folder / name).glob(f"traces/{agent}/*"))
        events = [
            json.loads(line)["event"] for path in paths for line in path.read_text().splitlines()
        ]
        return [event for event in events if event["kind"] == kind]

    def outcomes(self, name: str) -> list[str]:
        rows = (self.folder / name / "episodes.jsonl").read_text().splitlines()
        return [json.loads(row)["outcome"] for row in rows]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, provider: ScriptedModels) -> Runs:
    made = Runs(tmp_path_factory.mktemp("runs"), provider.address)
    made.first = made.run("first", *EVERY, "--engine", "process", mode="record")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("scaffold", MODEL_CALLS)
def test_a_scaffold_works_with_its_model(runs: Runs, scaffold: str) -> None:
    tool_calls = 1 if scaffold == "single_shot" else 2
    assert len(runs.events("first", "call", scaffold)) == 2 * tool_calls
    assert len(runs.events("first", "model_call", scaffold)) == 2 * MODEL_CALLS[scaffold]
    ends = [event["end"] for event in runs.events("first", "seat_ended", scaffold)]
    answer = "" if scaffold == "single_shot" else "two tries"
    assert ends == [{"outcome": "finished", "answer": answer}] * 2


@NEEDS_RAY
@pytest.mark.slow
@pytest.mark.release
def test_nodes_ask_models_and_the_run_stores_what_they_asked(runs: Runs) -> None:
    words = (*EVERY, "--engine", "process")
    on_nodes = runs.run("nodes", *words, "--on", "local:2", mode="record")
    assert on_nodes["trace_digest"] == runs.first["trace_digest"]
    stored = [path for path in (runs.folder / "nodes").rglob("*") if path.is_file()]
    assert not [path for path in stored if KEY.encode() in path.read_bytes()]
    cassette = str(runs.folder / "nodes" / "cassette")
    again = runs.run(
        "nodes_again", *words, "--on", "local:2", key="", mode="replay", cassette=cassette
    )
    assert again["trace_digest"] == on_nodes["trace_digest"]


@pytest.mark.slow
def test_a_monitor_sees_recorded_requests_as_it_saw_them_live(runs: Runs, tmp_path: Path) -> None:
    source = tmp_path / "hashing.py"
    source.write_text(
        "from fumehood.core.json_values import digest_json\n"
        "from fumehood.monitors.monitor import Decision\n"
        "class Hashing:\n"
        "    def begin(self, facts): pass\n"
        "    def before(self, step):\n"
        "        number = int(digest_json(step.to_json()), 16) % 1000 + 1\n"
        "        return Decision(suspicion=number / 2000)\n"
        "    after = before\n"
    )
    monitor = f"{source}:Hashing"
    words = ("-a", "react", "--engine", "process", "--i-trust-this-agent", "--monitor", monitor)
    said = runs.run("watched", *words, mode="record")
    assert not isinstance(said, str), said
    folder = str(runs.folder / "watched")
    live = fumehood_json("monitor", folder, "--recorded", "--json")["episodes"]
    again = fumehood_json("monitor", folder, "--monitor", monitor, "--json")["episodes"]
    decided = [
        [[_shown(one) for one in each["decisions"]] for each in own] for own in (live, again)
    ]
    assert decided[0] == decided[1]
    assert {one[0] for each in decided[0] for one in each} == {"model", "tool"}


def _shown(decision: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(decision[name] for name in ("step", "number", "stage", "suspicion"))


@pytest.mark.slow
def test_a_recorded_run_replays_byte_for_byte_without_a_provider(runs: Runs) -> None:
    bodies = list((runs.folder / "first" / "cassette" / "bodies").iterdir())
    asked = len(runs.events("first", "model_call"))
    assert 0 < len(bodies) < 2 * asked, "equal answers are kept once"
    again = runs.run(
        "again",
        *EVERY,
        *("--engine", "process"),
        mode="replay",
        providers=[{"name": "gone", "address": "http://127.0.0.1:9"}],
        cassette=str(runs.folder / "first" / "cassette"),
    )
    assert again["trace_digest"] == runs.first["trace_digest"]
    assert len(runs.events("again", "model_call")) == asked


@pytest.mark.slow
def test_the_tokens_of_replayed_requests_take_the_same_virtual_time(runs: Runs) -> None:
    text = (ROOT / "examples" / "water_works.yaml").read_text(encoding="utf-8")
    suite = runs.folder / "night.yaml"
    suite.write_text(text.replace("    latency:", "    token_us: 1000000\n    latency:"), "utf-8")
    words = ("-a", "react", "--engine", "process")
    recorded = runs.run("timed", *words, suite=suite, mode="record")
    cassette = str(runs.folder / "timed" / "cassette")
    again = runs.run("timed_again", *words, suite=suite, mode="replay", cassette=cassette)
    assert again["trace_digest"] == recorded["trace_digest"]
    tokens = [event["spent"]["model_tokens"] for event in runs.events("timed", "model_call")]
    times_ms = [event["at_ms"] for event in runs.events("timed", "call")]
    assert times_ms[0] == 1000 * tokens[0] + 500
    report = fumehood_json("replay", str(runs.folder / "timed"), "--json")
    assert (report["replayed"], report["differences"]) == (1, [])


@pytest.mark.slow
def test_a_missing_recording_is_a_failure_of_the_agent_and_is_reported(runs: Runs) -> None:
    cassette = str(runs.folder / "first" / "cassette")
    result = runs.run(
        "other", "-a", "react=plan_act", "--engine", "process", mode="replay", cassette=cassette
    )
    assert "infra(models)" not in runs.outcomes("other")
    assert result["models"]["react"]["not_recorded"] == 2


@pytest.mark.slow
def test_a_budget_ends_the_work(runs: Runs) -> None:
    result = runs.run("short", "-a", "react", "--engine", "process", budget={"calls": 2})
    assert set(runs.outcomes("short")) == {"out_of_budget(model_calls)"}
    assert len(runs.events("short", "model_call")) == 4
    budget = {"kind": "model_calls", "limit": 2, "used": 2, "requested": 1}
    assert [event["budget"] for event in runs.events("short", "model_refused")] == [budget] * 2
    folder = runs.folder / "short"
    task = json.loads(TASKS.read_text().splitlines()[0])["task_id"]
    shown = fumehood("show", str(folder), task)
    assert "refused: out_of_budget (requests: it may need 1, and 2 of 2 are used)" in shown
    assert (result["models"]["react"]["refused"], result["models"]["react"]["failed"]) == (2, 0)
    assert re.search("^models: react 4 calls, .*; 2 refused$", fumehood("score", str(folder)), re.M)


def test_refused_and_failed_requests_are_counted_without_a_reply(tmp_path: Path) -> None:
    with ScriptedModels(lambda _: ScriptedReply(status=400)) as models:
        runs = Runs(tmp_path, models.address)
        words = ("-a", "react", "--engine", "process")
        failed = runs.run("failed", *words, probe=False)
        refused = runs.run("refused", *words, probe=False, budget={"tokens": 1})
    costs = failed["models"]["react"]
    assert costs["failed"] == len(runs.events("failed", "model_call")) > 0
    assert costs["refused"] == 0
    printed = fumehood("score", str(tmp_path / "failed"))
    assert re.search(f"^models: react .* tokens.*; {costs['failed']} failed$", printed, re.M)
    costs = refused["models"]["react"]
    assert (costs["calls"], costs["refused"], costs["failed"]) == (0, 2, 0)
    printed = fumehood("score", str(tmp_path / "refused"))
    assert "models: react 0 calls, 0 tokens; 2 refused\n" in printed


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["react", "policy_aware"])
def test_a_run_with_model_budgets_replays_identically(runs: Runs, agent: str) -> None:
    name = f"bounded-{agent}"
    runs.run(name, "-a", agent, "--engine", "process", budget={"calls": 2, "tokens": 10**6})
    report = fumehood_json("replay", str(runs.folder / name), "--json")
    assert (report["replayed"], report["differences"]) == (2, [])
    assert report["identical"] == (2 if agent == "policy_aware" else 0)


@pytest.mark.slow
def test_grants_are_in_the_run_and_in_the_first_lines_of_its_results(runs: Runs) -> None:
    words = ("-a", "single_shot", "--engine", "process", "--grant", "web_search")
    result = runs.run("granted", *words, grants=["field:top_k"])
    assert result["model_grants"] == ["field:top_k", "web_search"]
    folder = runs.folder / "granted"
    config = json.loads((folder / "run.json").read_text())["config"]
    assert config["models"]["grants"] == ["field:top_k", "web_search"]
    printed = fumehood("score", str(folder))
    assert printed.startswith("model requests may use: field:top_k, web_search\n")
    fumehood("report", str(folder))
    page = (folder / "report" / "report.html").read_text()
    assert "model requests may use: field:top_k, web_search" in page


def test_a_grant_needs_models(runs: Runs) -> None:
    done = run_fumehood("run", "sample", "-a", "policy_aware", "--grant", "a", cwd=runs.folder)
    assert done.returncode == 2
    assert done.stderr == "fumehood: --grant a: add model providers under `models` in --config\n"


def test_a_missing_key_is_reported_before_the_run(runs: Runs) -> None:
    said = runs.run("none", "-a", "react", "--engine", "process", key="")
    assert (
        said
        == "fumehood: set the environment variable SCRIPTED_KEY: the key of provider scripted\n"
    )
    assert not (runs.folder / "none").exists()
