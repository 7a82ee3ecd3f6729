"""`fumehood agent`: templates and checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fumehood.agent_check.cases import load_robustness_cases
from fumehood.agent_check.check import Check, Finding, Verdict
from fumehood.agent_check.init import create_agent, languages, next_commands
from fumehood.core.errors import InputError
from fumehood.engines.engine import EngineOptions
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.service_pool import ServicePool
from tests.parts.commands import fumehood, fumehood_json

AGENTS = Path(__file__).parent / "agents"
INTERPRETER = Path(__file__).parents[1] / "conformance" / "agents" / "python"

SOON_MS = 10_000

Look = Callable[..., list[Finding]]


@pytest.fixture(scope="module")
def pool() -> Iterator[ServicePool]:
    with ServicePool(1) as services:
        yield services


@pytest.fixture
def look(pool: ServicePool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Look]:
    """Runs a test agent on robustness cases, by name."""
    monkeypatch.chdir(AGENTS)
    engine = ProcessEngine(EngineOptions(trust=True))

    def look(agent: str, *names: str, wall_ms: int = SOON_MS) -> list[Finding]:
        image = engine.prepare(name_agents([agent])[0].source)
        return list(Check(engine, image, pool, wall_ms).robustness(names))

    yield look
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "condition", "detail"),
    [
        (
            "clumsy_agents:FallsOverFailures",
            "denied",
            "it ended with exit status 1: AttributeError",
        ),
        ("clumsy_agents:AnswersAtLength", "big_result", "refused, too_large: "),
        (
            "clumsy_agents:MissesTheEnd",
            "budget_end",
            "it ended with exit status 1: fumehood_agent.errors.Ended",
        ),
        ("clumsy_agents:SendsRubbish", "plain", "1 of its messages were refused (malformed)"),
        ("bad_agents:ExitsEarly", "plain", "it ended without submitting or giving up"),
        ("bad_agents:ExitsWithStatus", "plain", "it ended with exit status 41"),
        (
            "bad_agents:PrintsOneGigabyte",
            "plain",
            "bytes on standard output, of which 1048576 are kept",
        ),
    ],
)
def test_problems_of_an_agent_are_reported(
    look: Look, agent: str, condition: str, detail: str
) -> None:
    (finding,) = look(agent, condition)
    assert finding.verdict is Verdict.FAILS
    assert detail in finding.detail


@pytest.mark.slow
def test_an_agent_that_does_not_end_is_reported(look: Look) -> None:
    (finding,) = look("bad_agents:Hangs", "plain", wall_ms=1_500)
    assert (finding.verdict, finding.detail) == (
        Verdict.FAILS,
        "it was still running when its time was over",
    )


@pytest.mark.slow
def test_an_agent_that_keeps_running_is_stopped_and_reported(look: Look) -> None:
    (finding,) = look("clumsy_agents:Lingers", "plain")
    assert finding.verdict is Verdict.HOLDS
    assert finding.detail.endswith("it ran for 2 s after the end of the episode and was stopped")


def test_a_clumsy_agent_passes_without_failures(look: Look) -> None:
    (finding,) = look("clumsy_agents:FallsOverFailures", "plain")
    assert (finding.verdict, finding.detail) == (Verdict.HOLDS, "finished, 1 call")


@pytest.mark.slow
def test_a_case_that_was_not_reached_does_not_pass(look: Look) -> None:
    by_name = {finding.name: finding for finding in look("noop", "denied", "turns", "budget_end")}
    assert by_name["denied"].detail == "no call of the agent reached a fault"
    assert by_name["budget_end"].detail == "the agent ended before its budget"
    assert [finding.verdict for finding in by_name.values()].count(Verdict.NOT_REACHED) == 2


def test_an_unknown_case_is_answered_with_the_known_ones(look: Look) -> None:
    with pytest.raises(InputError, match="there is no case 'plane'; cases: plain, timeout"):
        look("noop", "plane")


@pytest.mark.parametrize("wall_time_s", ["nan", "-1"])
def test_an_invalid_wall_time_is_rejected(wall_time_s: str) -> None:
    assert fumehood("agent", "check", "noop", f"--wall-time-s={wall_time_s}", status=2) == ""


@pytest.mark.slow
def test_an_agent_with_a_model_gets_the_stub_model() -> None:
    words = ("--engine", "process", "--only", "turns", "--only", "budget_end", "--json")
    report = fumehood_json("agent", "check", "react", *words)
    assert [finding["detail"] for finding in report["findings"]] == [
        "finished, 6 calls",
        "out_of_budget(calls), 2 calls",
    ]


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_the_python_template_passes_all_robustness_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fumehood("agent", "init", "--language", "python", str(tmp_path / "mine"))
    monkeypatch.chdir(tmp_path / "mine")
    for folder in (tmp_path, tmp_path / "mine"):
        folder.chmod(0o755)
    printed = fumehood("agent", "check", "agent:Agent", "--engine", "bubblewrap")
    lines = printed.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        ["ok", one.name] for one in load_robustness_cases()
    ]
    assert (
        lines[-1]
        == f"{len(load_robustness_cases())} of {len(load_robustness_cases())} passed, 0 failed"
    )


@pytest.mark.slow
def test_a_failure_appears_in_json_and_in_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(AGENTS)
    words = ("--engine", "process", "--i-trust-this-agent", "--only", "denied", "--json")
    report = fumehood_json("agent", "check", "clumsy_agents:FallsOverFailures", *words, status=1)
    (finding,) = report["findings"]
    assert (report["failed"], finding["name"], finding["verdict"]) == (1, "denied", "failed")


@pytest.mark.slow
def test_an_agent_with_scripts_must_report_every_observation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(AGENTS)
    words = ("--scripts", "--engine", "process", "--i-trust-this-agent", "--only", "values")
    report = fumehood_json("agent", "check", "clumsy_agents:Lingers", *words, "--json", status=1)
    assert "it did not print one line with a JSON list" in report["findings"][0]["detail"]
    monkeypatch.chdir(INTERPRETER)
    assert fumehood("agent", "check", "agent:Scripted", *words).endswith(
        "1 of 1 passed, 0 failed\n"
    )


@pytest.mark.parametrize("language", languages())
def test_every_template_prints_the_next_commands(language: str, tmp_path: Path) -> None:
    files = create_agent(language, tmp_path / "new")
    assert {"Dockerfile", "README.md", "tasks.jsonl", ".dockerignore"} <= set(files)
    assert any(file.startswith("test") and file != "tasks.jsonl" for file in files)
    commands = next_commands(language)
    assert any(command.startswith("fumehood agent check") for command in commands)
    assert any(command.startswith("fumehood run tasks.jsonl") for command in commands)


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InputError, match="is not empty: choose a new folder"):
        create_agent("python", tmp_path)
    assert (tmp_path / "mine").read_text() == "precious"


def test_the_task_of_a_template_is_valid(tmp_path: Path) -> None:
    create_agent("python", tmp_path)
    report = json.loads(fumehood("suite", "validate", str(tmp_path / "tasks.jsonl"), "--json"))
    assert (report["tasks"], report["oracles_proven"]) == (1, 1)
