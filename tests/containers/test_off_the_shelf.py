"""Unmodified third-party agents in boxes, with a scripted model."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.agent_check.check import Check, Verdict
from fumehood.core.errors import InfraError
from fumehood.engines.bubblewrap.engine import BubblewrapEngine
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxSpec,
    Engine,
    EngineOptions,
    Image,
    Mount,
)
from fumehood.engines.images.helper import build_helper
from fumehood.gateway.settings import GatewaySettings, Provider
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT
from tests.parts.commands import fumehood
from tests.parts.listening import Listened, listening
from tests.parts.npm import require_npm
from tests.parts.specs import episode_spec

WORKSPACE = ROOT / "examples" / "workspaces" / "fix-the-average"
AGENTS = ROOT / "sandbox_images" / "agents"
SOLUTION = (WORKSPACE / "solution" / "solve.sh").read_text(encoding="utf-8")
ANSWER = "The tier is basic."
PATIENCE_MS = 300_000
FETCH_TIMEOUT_S = 600
IN_BOX = ("/fumehood/bin/fumehood", "run", "--port", "4141", "--")
TOOLS = ("get_account", "close_account", "submit")
QUICK_AGENT = "openai-agents"
"""The agent that is tried with every commit. The others download for minutes."""


def each_agent(names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize a test by the names; only ``QUICK_AGENT`` runs without ``--every-agent``."""
    agents = [
        pytest.param(name, marks=() if name == QUICK_AGENT else pytest.mark.every_agent)
        for name in names
    ]
    return pytest.mark.parametrize("name", agents)


def looks_once(asked: AskedOfModel) -> ScriptedReply:
    """A model that reads an account and answers with its tier."""
    heard = asked.body.decode()
    offered = [tool.get("function", tool).get("name") for tool in asked.request["tools"]]
    has_looked = "basic" in heard
    if offered == ["bash"]:
        ends = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo '{ANSWER}'"
        looks = """/fumehood/bin/fumehood call get_account '{"id": "ax1"}'"""
        return ScriptedReply(tools=(ToolUse("bash", {"command": ends if has_looked else looks}),))
    if has_looked and "final_answer" in offered:
        return ScriptedReply(tools=(ToolUse("final_answer", {"answer": ANSWER}),))
    if has_looked:
        return ScriptedReply(text=ANSWER)
    (tool,) = [name for name in offered if name.endswith("get_account")]
    return ScriptedReply(tools=(ToolUse(tool, {"id": "ax1"}),))


@pytest.fixture
def models() -> Iterator[ScriptedModels]:
    with ScriptedModels(looks_once) as provider:
        yield provider


@pytest.fixture
def episode(models: ScriptedModels) -> Iterator[Listened]:
    provider = Provider(
        name="scripted", address=models.address, models=("some-model",), key="secret"
    )
    offer = HttpOffer(build_helper(lambda _: None), GatewaySettings(providers=(provider,)))
    with (
        ServicePool(1, ServiceOptions(http=offer)) as pool,
        pool.lease() as client,
        listening(client, episode_spec(calls=5, model_calls=5)) as open_episode,
    ):
        yield open_episode


def fetched(name: str) -> Path:
    """Return the folder of an agent; one worker downloads its packages."""
    folder = AGENTS / name
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "packages").is_dir():
            subprocess.run(
                [ROOT / "scripts" / "agent-packages", name], check=True, timeout=FETCH_TIMEOUT_S
            )
        shutil.copy(AGENTS / "seat.py", folder / "packages")  # It may have changed since.
    except subprocess.CalledProcessError:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{name} cannot be fetched here: no registry answers")
    finally:
        os.close(lock)
    return folder


def works(engine: Engine, image: Image, episode: Listened) -> None:
    """Run an agent: it makes the call that its model requests, and submits the model's text."""
    box = engine.start(BoxSpec(image=image, socket_dir=Path(episode.directory)))
    try:
        ended = box.wait(PATIENCE_MS)
    finally:
        output = box.close()
    assert ended is not None
    assert ended.code == 0, output.stderr.decode()[-3000:]
    episode.close()
    calls = [event for event in episode.events if event["kind"] == "call"]
    assert [(call["tool"], call["arguments"]) for call in calls] == [("get_account", {"id": "ax1"})]
    assert [event["end"] for event in episode.events if event["kind"] == "seat_ended"] == [
        {"outcome": "finished", "answer": ANSWER}
    ]


def offered_first(models: ScriptedModels) -> str:
    return json.dumps(models.asked[0].request["tools"])


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.image
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai-agents", ()),
        pytest.param("smolagents", (), marks=pytest.mark.every_agent),
        pytest.param("continue", (), marks=pytest.mark.every_agent),
        pytest.param("mcp-client", ("stdio",), marks=pytest.mark.every_agent),
        ("mcp-client", ("http",)),
        pytest.param("openhands", (), marks=pytest.mark.every_agent),
    ],
)
def test_an_agent_uses_its_model_and_its_tools(
    docker_engine: DockerEngine,
    models: ScriptedModels,
    episode: Listened,
    name: str,
    words: tuple[str, ...],
) -> None:
    image = docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(fetched(name))))
    command = (*image.command[: len(image.command) - len(words)], *words)
    works(docker_engine, replace(image, command=command), episode)
    assert all(tool in offered_first(models) for tool in TOOLS), "on the first turn"


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.every_agent
def test_an_agent_with_only_a_shell_uses_its_model_and_its_tools(
    docker_engine: DockerEngine, models: ScriptedModels, episode: Listened
) -> None:
    image = docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(fetched("mini-swe-agent"))))
    works(docker_engine, image, episode)
    assert "fumehood tools" in json.dumps(models.asked[0].request["messages"])


@pytest.mark.every_agent
@pytest.mark.docker
@pytest.mark.image
def test_an_acp_agent_uses_its_model_and_its_tools(
    docker_engine: DockerEngine, models: ScriptedModels, episode: Listened
) -> None:
    require_npm()
    (agent,) = name_agents(["acp:opencode"])
    try:
        image = docker_engine.prepare(agent.source)
    except InfraError:
        if os.environ.get("CI"):
            raise
        pytest.skip("opencode cannot be fetched here: no registry answers")
    works(docker_engine, agent.started_in(image), episode)
    asked = [event for event in episode.events if event["kind"] == "permission"]
    assert [(event["title"], event["answer"]) for event in asked] == [
        ("seat_get_account", "allow_once")
    ]
    offered = {tool["function"]["name"] for tool in models.asked[0].request["tools"]}
    assert {f"seat_{tool}" for tool in TOOLS} <= offered
    assert all(name.startswith("seat_") for name in offered), "no built-in tools"


def repairs_then_ends(asked: AskedOfModel) -> ScriptedReply:
    """A model that corrects the program of the task, and ends."""
    ends = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo corrected"
    has_repaired = len(asked.request["messages"]) > 2
    return ScriptedReply(tools=(ToolUse("bash", {"command": ends if has_repaired else SOLUTION}),))


@pytest.mark.docker
@pytest.mark.every_agent
def test_an_agent_works_inside_a_workspace_with_its_own_shell(tmp_path: Path) -> None:
    agent = tmp_path / "mini_swe_agent"
    shutil.copytree(ROOT / "examples" / "mini_swe_agent", agent)
    shutil.copytree(fetched("mini-swe-agent") / "packages", agent / "packages")
    run, config = tmp_path / "run", tmp_path / "models.yaml"
    with ScriptedModels(repairs_then_ends) as provider:
        config.write_text(
            "models:\n  providers:\n    - name: scripted\n"
            f"      address: {provider.address}\n      models: [some-model]\n",
            encoding="utf-8",
        )
        fumehood(
            *("run", f"harbor:{WORKSPACE}", "-a", str(agent), "--config", str(config)),
            *("--engine", "docker", "--out", str(run)),
            timeout_s=600,
        )
    (row,) = map(json.loads, (run / "episodes.jsonl").read_text("utf-8").splitlines())
    assert (row["success"], row["metrics"]["agent_box"]) == (True, "shared")
    assert row["metrics"]["verifier"]["changed"] == ["/app/average.py"]
    models = (run / row["trace"]).read_text("utf-8").count('"model_call"')
    assert models == len(provider.asked)


READY_MADE = (ROOT / "docs" / "agents" / "ready_made.md").read_text(encoding="utf-8")
NOT_PASSED = {
    name: set(re.findall(r"`(\w+)`", cases))
    for name, cases in re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]*) \|$", READY_MADE, re.MULTILINE)
}
"""The robustness cases that each agent does not pass, as the page states."""


@pytest.mark.every_agent
@pytest.mark.docker
@pytest.mark.image
@each_agent(sorted(NOT_PASSED))
def test_the_page_states_the_robustness_cases_that_an_agent_does_not_pass(name: str) -> None:
    options = EngineOptions()
    with Check.of(str(fetched(name)), "docker", options, PATIENCE_MS, lambda _: None) as check:
        findings = list(check.robustness())
    failed = {found.name: found.detail for found in findings if found.verdict is not Verdict.HOLDS}
    assert set(failed) == NOT_PASSED[name], failed


def solves_with_bash(asked: AskedOfModel) -> ScriptedReply:
    """A model that runs the solution of a workspace task."""
    heard = asked.body.decode()
    if "was corrected" not in heard:
        command = f"{SOLUTION}\necho It was corrected."
    elif "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" in heard:
        command = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo Corrected."
    else:
        return ScriptedReply(text="Corrected.")
    return ScriptedReply(tools=(ToolUse("bash", {"command": command}, f"call_{len(heard)}"),))


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.image
@each_agent(["continue", "mini-swe-agent", "openai-agents", "openhands"])
def test_an_agent_solves_a_task_in_a_workspace(name: str, tmp_path: Path) -> None:
    task = f"harbor:{WORKSPACE}"
    words = ("--agent", str(fetched(name)), "--engine", "docker", "--out", str(tmp_path / "run"))
    with ScriptedModels(solves_with_bash) as provider:
        config = tmp_path / "models.json"
        listed = {"name": "scripted", "address": provider.address, "models": ["some-model"]}
        config.write_text(json.dumps({"models": {"providers": [listed]}}), encoding="utf-8")
        fumehood("run", task, *words, "--config", str(config), timeout_s=FETCH_TIMEOUT_S * 2)
    row = json.loads((tmp_path / "run" / "episodes.jsonl").read_text(encoding="utf-8"))
    assert row["checks"] == {"reward": True}


def mcp_client(transport: str) -> Image:
    folder = fetched("mcp-client")
    mounts = (Mount(folder / "packages", "/packages"), Mount(folder / "agent.py", "/agent.py"))
    command = (*IN_BOX, "python3", "/agent.py", transport)
    return Image("", "", command, mounts, {"PYTHONPATH": "/packages"})


def continue_cli(dialect: str) -> Image:
    folder = fetched("continue")
    packages = folder / "packages" / "node_modules"
    (node,) = packages.glob("node-linux-*")
    mounts = (
        Mount(packages, "/continue/node_modules"),
        Mount(folder / "packages" / "seat.py", "/continue/seat.py"),
        Mount(folder / "agent.py", "/continue/agent.py"),
    )
    node_path = f"/continue/node_modules/{node.name}/bin/node"
    command = (*IN_BOX, "python3", "/continue/agent.py", node_path, dialect)
    settings = {"CONTINUE_GLOBAL_DIR": "/tmp/continue", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}
    return Image("", "", command, mounts, settings)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("made_of", "word"),
    [
        (mcp_client, "stdio"),
        (mcp_client, "http"),
        pytest.param(continue_cli, "openai", marks=pytest.mark.every_agent),
        (continue_cli, "anthropic"),
    ],
)
def test_an_npm_agent_needs_no_image(
    models: ScriptedModels, episode: Listened, made_of: Callable[[str], Image], word: str
) -> None:
    image = made_of(word)
    with closing(BubblewrapEngine()) as engine:
        works(engine, image, episode)
    assert all(tool in offered_first(models) for tool in TOOLS)
    assert (models.asked[0].path == "/v1/messages") == (word == "anthropic")


def test_every_readme_lists_the_added_files() -> None:
    listed = (AGENTS / "README.md").read_text(encoding="utf-8")
    folders = sorted(path.name for path in AGENTS.iterdir() if path.is_dir())
    assert folders == [
        *("continue", "mcp-client", "mini-swe-agent", "openai-agents", "opencode", "openhands"),
        "smolagents",
    ]
    for name in folders:
        assert f"[{name}]({name}/README.md)" in listed
        text = (AGENTS / name / "README.md").read_text(encoding="utf-8")
        assert "What was added:" in " ".join(text.split())
