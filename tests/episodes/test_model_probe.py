"""A model that cannot be used is found before the run, by one request of each scaffold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.shared.in_memory import open_task
from fumehood.core.errors import InputError
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.gateway.probe import RESPONSE_BYTES_MAX, ProbeRequest, send_probes
from fumehood.gateway.settings import Provider
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.config import ModelsConfig, run_config
from fumehood.orchestrator.model_probe import ProbedRun, probe_models, tools_of
from fumehood.orchestrator.models import gateway_settings
from fumehood.orchestrator.setup import RunSetup
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood_agent.scaffolds.table import SCAFFOLDS
from tests.parts.commands import run_fumehood
from tests.parts.tasks import crud_task

KEY = "sk-never-shown-0123456789"


def probed(address: str, *agents: str, parameters: Any = None, **more: Any) -> None:
    provider = {"name": "local", "address": address, "key_env": "PROBED_KEY"}
    settings = {"providers": [provider], "parameters": {"m1": parameters or {}}, **more}
    config = ModelsConfig.model_validate(settings)
    run = ProbedRun(name_agents(agents, "m1"), config, gateway_settings(config, ()))
    probe_models([run, run])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBED_KEY", KEY)


def test_equal_requests_are_sent_once_and_tools_as_the_scaffold_sends_them() -> None:
    with ScriptedModels([ScriptedReply(text="OK")]) as models:
        probed(models.address, *SCAFFOLDS)
    assert sorted("tools" in asked.request for asked in models.asked) == [False, True]
    assert {asked.headers["authorization"] for asked in models.asked} == {f"Bearer {KEY}"}
    assert {asked.headers["content-type"] for asked in models.asked} == {"application/json"}


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_each_api_is_probed_in_its_form(dialect: str) -> None:
    with ScriptedModels([ScriptedReply(text="OK")]) as models:
        probed(models.address, "react", parameters={"dialect": dialect})
    assert len(models.asked) == 1


def test_the_form_of_the_token_limit_is_probed() -> None:
    def refuses_one_name(asked: AskedOfModel) -> ScriptedReply:
        if "max_tokens" in asked.request:
            return ScriptedReply(status=400, error=f"Use 'max_completion_tokens'. {KEY}\n\x1b[2J")
        return ScriptedReply(text="OK")

    with ScriptedModels(refuses_one_name) as models:
        with pytest.raises(InputError) as raised:
            probed(models.address, "react")
        probed(models.address, "react", parameters={"output_limit_field": "max_completion_tokens"})
    url = f"{models.address}/v1/chat/completions"
    assert str(raised.value) == (
        f"provider local at {url}: the request of react to m1 is refused with status 400 "
        "(Use 'max_completion_tokens'. [key] \\x1b[2J); add to models.parameters: "
        '"m1": {output_limit_field: max_completion_tokens}'
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ScriptedReply(status=401), ["status 401", "key_env"]),
        (ScriptedReply(status=404), ["status 404", "the name of the model"]),
        (ScriptedReply(status=503), ["status 503, 3 times", "check its address"]),
        (ScriptedReply(hangs_up=True), ["gets no response", "3 times"]),
        (ScriptedReply(whole={"detail": "a page"}), ["in another form"]),
    ],
)
def test_a_provider_that_cannot_be_used_is_one_line(reply: ScriptedReply, words: list[str]) -> None:
    with ScriptedModels([reply]) as models, pytest.raises(InputError) as raised:
        probed(models.address, "react")
    message = str(raised.value)
    assert models.address in message
    assert message.isprintable()
    assert all(word in message for word in words)


def test_the_probe_has_the_tools_of_the_first_task() -> None:
    with ScriptedModels([ScriptedReply(text="OK")]) as models:
        provider = {"name": "local", "address": models.address}
        config = {"suite": "sample", "agents": ["react"], "model": "m1"}
        setup = RunSetup.create(run_config({**config, "models": {"providers": [provider]}}))
        probe_models([setup.probed()])
    sent = [tool["function"]["name"] for tool in models.asked[0].request["tools"]]
    first = open_task(setup.suite.cases[0].task, MemoryRecorder()).seats[0]
    assert sent == [*(tool.name for tool in first.list_tools()), "give_up"]


def test_a_world_that_needs_a_process_is_probed_with_an_example() -> None:
    task = replace(crud_task(), world="taubench")
    assert [tool.name for tool in tools_of(task)] == ["look_up"]


def test_a_response_is_read_up_to_a_limit() -> None:
    endless = {"text": "x" * (2 * RESPONSE_BYTES_MAX)}
    with ScriptedModels([ScriptedReply(whole=endless)]) as models:
        provider = Provider(name="local", address=models.address)
        (response,) = send_probes([ProbeRequest(provider, "/v1/chat/completions", "{}")])
    assert len(response.body) == RESPONSE_BYTES_MAX


@pytest.mark.parametrize("failure", [ScriptedReply(hangs_up=True), ScriptedReply(status=503)])
def test_a_provider_that_answers_a_later_attempt_is_accepted(failure: ScriptedReply) -> None:
    with ScriptedModels([failure, ScriptedReply(text="OK")]) as models:
        probed(models.address, "react")
    assert len(models.asked) == 2


def test_a_busy_provider_is_no_evidence() -> None:
    with ScriptedModels([ScriptedReply(status=429)]) as models:
        probed(models.address, "react")


def test_a_replay_and_a_disabled_probe_ask_nothing(tmp_path: Path) -> None:
    with ScriptedModels([ScriptedReply(status=500)]) as models:
        probed(models.address, "react", probe=False)
        probed(models.address, "react", mode="replay", cassette=tmp_path)
    assert models.asked == []


@pytest.mark.slow
def test_a_run_with_a_wrong_address_starts_nothing(tmp_path: Path) -> None:
    provider = {"name": "gone", "address": "http://127.0.0.1:9"}
    config = tmp_path / "models.yaml"
    config.write_text(json.dumps({"models": {"providers": [provider]}}))
    out = tmp_path / "run"
    words = ["-a", "react", "--model", "m", "--config", str(config), "--out", str(out)]
    done = run_fumehood("run", "sample", *words, timeout_s=120)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "http://127.0.0.1:9/v1/chat/completions" in line
    assert not out.exists()
