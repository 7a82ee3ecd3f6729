"""Bad agents and bad input give one line of error and exit status 2, and no episode is lost."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fumehood.engines.engine import EngineOptions
from fumehood.engines.registry import ENGINES
from tests.parts.commands import run_fumehood

AGENTS = Path(__file__).parent / "agents"

BAD_AGENTS = {
    "crashes_at_import:Agent": "ModuleNotFoundError: No module named 'no_such_module'",
    "bad_agents:ExitsEarly": "crashed (exited without submitting) in 1 of 1 episodes",
    "bad_agents:ExitsWithStatus": "crashed (exit status 41) in 1 of 1 episodes",
    "bad_agents:Hangs": "not finished within its 6 s in 1 of 1 episodes",
    "bad_agents:PrintsOneGigabyte": "standard output longer than the 1048576 bytes that are kept",
    "bad_agents:SendsHundredMegabytes": "crashed",
    "bad_agents:SendsMalformedBytes": "crashed (exit status 1) in 1 of 1 episodes",
    "bad_agents:OpensThousandStreams": "crashed",
}

SLOW_BAD_AGENTS = {
    "bad_agents:Hangs",
    "bad_agents:PrintsOneGigabyte",
    "bad_agents:SendsHundredMegabytes",
}


def _fumehood(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_fumehood(*arguments, cwd=AGENTS, timeout_s=120)


@pytest.fixture(scope="module")
def engine() -> str:
    for name in ("docker", "bubblewrap"):
        candidate = ENGINES.load(name)(EngineOptions())
        ready = candidate.check().ready
        candidate.close()
        if ready:
            return name
    if os.environ.get("CI"):
        pytest.fail("no engine can hold an untrusted agent here")
    pytest.skip("no engine can hold an untrusted agent here")


@pytest.fixture(scope="module")
def one_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sample = (
        Path(__file__).parents[2] / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
    )
    path = tmp_path_factory.mktemp("suite") / "one.jsonl"
    path.write_text(sample.read_text(encoding="utf-8").split("\n", 1)[0] + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(agent, marks=[pytest.mark.slow] if agent in SLOW_BAD_AGENTS else [])
        for agent in BAD_AGENTS
    ],
)
def test_a_bad_agent_gives_one_line_and_status_2(
    agent: str, engine: str, one_task: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    wall_s = "6" if agent == "bad_agents:Hangs" else "60"
    done = _fumehood(
        "run",
        str(one_task),
        "-a",
        agent,
        "--engine",
        engine,
        "--wall-time-s",
        wall_s,
        "--out",
        str(out),
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("fumehood:")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert BAD_AGENTS[agent] in lines[0]
    assert "Traceback" not in done.stderr
    rows = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
    assert [row["outcome"].startswith("infra") for row in rows] == [False]
    assert (out / rows[0]["trace"]).is_file()


BAD_INPUT = {
    ("run", "no_such_suite", "-a", "noop"): "no benchmark is called 'no_such_suite'",
    ("run", "sampel", "-a", "noop"): "did you mean 'sample'?",
    ("run", "sample"): "name at least one agent",
    ("run", "sample", "-a", "noop", "--i-trust-this-agent"): "has no effect on the engine auto",
    ("resume", "run", "--runtime", "runsc"): "--runtime and --i-trust-this-agent need --engine",
    ("run", "sample", "-a", "mine.py"): "name a module and its class, such as mine:Agent",
    ("run", "sample", "-a", "./nowhere"): "there is no folder ./nowhere",
    ("run", "sample", "-a", "noop", "-a", "noop"): "two agents have the label 'noop'",
    (
        "run",
        "sample",
        "-a",
        "noop",
        "--engine",
        "process",
        "--runtime",
        "runsc",
    ): "remove --runtime",
    ("run", "sample", "-a", "noop", "--engine", "chroot"): "no engine is called 'chroot'",
    ("run", "sample", "-a", "noop", "--trials", "0"): "trials",
    ("run", "sample", "-a", "bad_agents:Hangs", "--engine", "process"): "--i-trust-this-agent",
    ("resume", "/nonexistent"): "is not a run folder: it does not exist",
    ("score", "/nonexistent"): "is not a run folder",
    ("show", "/nonexistent"): "is not a run folder",
    ("frobnicate",): "frobnicate",
}


@pytest.mark.parametrize("arguments", BAD_INPUT, ids=" ".join)
def test_bad_input_gives_one_line_and_status_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run")) if arguments[0] == "run" else ()
    done = _fumehood(*arguments, *out)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert BAD_INPUT[arguments] in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.docker
def test_a_missing_runtime_is_named(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run"))
    done = _fumehood("run", "sample", "-a", "noop", "--engine", "docker", "--runtime", "none", *out)
    assert done.returncode == 2, done.stderr
    assert "no runtime 'none' is registered" in done.stderr


@pytest.mark.docker
def test_a_missing_image_is_named(tmp_path: Path) -> None:
    done = _fumehood("run", "sample", "-a", "no-such-image:1", "--out", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert "no-such-image:1" in done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    {
        "suite: sample\nagnets: [noop]\n": "agnets: is not a known key; did you mean 'agents'?",
        "suite: sample\nsuite: other\n": ":2: the key 'suite' is repeated",
        "suite: [sample\n": ":1: the file ends too early: expected",
        "suite: sample\nagents: [noop]\ntrials: many\n": "trials",
        "- a\n- b\n": "must contain settings",
        "suite: sample\nagents: [noop]\nlimits: {memory: 3}\n": (
            "limits.memory: is not a known key; did you mean"
        ),
    }.items(),
)
def test_bad_yaml_is_named_with_file_and_line_or_key(
    text: str, complaint: str, tmp_path: Path
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(text, encoding="utf-8")
    done = _fumehood("run", "--config", str(config), "--out", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert complaint in done.stderr


def test_a_bad_task_record_is_named_with_file_line_and_field(
    one_task: Path, tmp_path: Path
) -> None:
    good = one_task.read_text(encoding="utf-8")
    record = json.loads(good)
    record["task_id"], record["budget"]["steps"] = "another", "many"
    path = tmp_path / "tasks.jsonl"
    path.write_text(good + json.dumps(record) + "\n", encoding="utf-8")
    done = _fumehood("run", str(path), "-a", "noop", "--out", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert f"{path}:2" in done.stderr
    assert "budget.steps" in done.stderr
