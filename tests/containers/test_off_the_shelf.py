"""Agents of others, unmodified, in boxes, with a scripted model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engines.docker import DockerEngine
from runner.engines.engine import AgentKind, AgentSource, BoxSpec, Limits
from runner.engines.images.helper import build_helper
from runner.gateway.settings import GatewaySettings, Upstream
from runner.orchestrator.service_pool import HttpOffer, ServicePool
from runner.testing.scripted_models import AskedOfModel, ScriptedModels
from runner.testing.scripted_replies import ScriptedReply, ToolUse
from tests.architecture.project import ROOT
from tests.parts.listening import Listened, listening
from tests.parts.specs import episode_spec

pytestmark = [pytest.mark.docker, pytest.mark.image]

AGENTS = ROOT / "sandbox_images" / "agents"
ANSWER = "The tier is basic."
PATIENCE_MS = 120_000
FETCH_TIMEOUT_S = 300


def looks_once(asked: AskedOfModel) -> ScriptedReply:
    """A model that looks an account up and says what its tier is."""
    heard = asked.body.decode()
    if "basic" in heard:
        last = (ToolUse("final_answer", {"answer": ANSWER}),) if "final_answer" in heard else ()
        return ScriptedReply(text="" if last else ANSWER, tools=last)
    return ScriptedReply(tools=(ToolUse("get_account", {"id": "ax1"}),))


@pytest.fixture
def models() -> Iterator[ScriptedModels]:
    with ScriptedModels(looks_once) as provider:
        yield provider


@pytest.fixture
def episode(models: ScriptedModels) -> Iterator[Listened]:
    upstream = Upstream(name="scripted", address=models.address, models=("some-model",), key="secret")
    offer = HttpOffer(build_helper(lambda _: None), GatewaySettings(upstreams=(upstream,)))
    with (
        ServicePool(1, offer) as pool,
        pool.lease() as client,
        listening(client, episode_spec(calls=5, model_calls=5)) as open_episode,
    ):
        yield open_episode


def fetched(name: str) -> Path:
    """Return the folder of an agent, with its packages."""
    folder = AGENTS / name
    if not (folder / "packages").is_dir():
        subprocess.run([ROOT / "scripts" / "agent-packages", name], check=True, timeout=FETCH_TIMEOUT_S)
    return folder


@pytest.mark.parametrize("name", ["openai-agents", "smolagents"])
def test_it_finds_its_model_and_its_tools(
    docker_engine: DockerEngine, models: ScriptedModels, episode: Listened, name: str
) -> None:
    image = docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(fetched(name))))
    box = docker_engine.start(BoxSpec(image=image, gloves=Path(episode.directory), limits=Limits()))
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
    tools = json.dumps(models.asked[0].request["tools"])
    assert all(tool in tools for tool in ("get_account", "close_account", "submit")), "on the first turn"
