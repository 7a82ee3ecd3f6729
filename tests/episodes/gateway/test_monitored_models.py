"""Monitors decide about model requests and responses, and see streams as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import EndedByMonitor, MonitorFailed
from fumehood.orchestrator.replay import replay_episode
from fumehood.orchestrator.service_pool import HttpOffer, ServicePool
from fumehood.testing.scripted_models import ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.listening import listening
from tests.parts.models import CHAT, Asker, Script, chat, gateway_settings
from tests.parts.monitors import python_monitor
from tests.parts.specs import episode_spec

ASKED = "arguments.messages.0.content"


def _rule(word: str, **decision: Any) -> dict[str, Any]:
    condition = {"op": "in", "path": ASKED, "value": word}
    return {"name": word, "kind": "model", "conditions": [condition], **decision}


RULES: JsonObject = {
    "rules": [
        _rule("secret", action="refuse", suspicion=0.5, message="No secrets."),
        _rule("stop", action="end"),
        _rule("swap", action="modify", arguments=chat(text="swapped")),
        _rule("grow", action="modify", arguments=chat(text="grown" * 1000, max_tokens=4000)),
        _rule("rewrite", stage="after", action="modify", output={"body": {"rewritten": True}}),
        {
            "name": "withhold",
            "stage": "after",
            "kind": "model",
            "conditions": [
                {"op": "in", "path": "output.body.choices.0.message.content", "value": "plan"}
            ],
            "action": "refuse",
        },
        {
            "name": "stream",
            "stage": "after",
            "kind": "model",
            "conditions": [{"op": "exists", "path": "output.events.0.choices"}],
            "suspicion": 0.25,
        },
    ]
}


@pytest.fixture(scope="module")
def monitored_pool(models: ScriptedModels) -> Iterator[ServicePool]:
    rules = MonitorSpec(name="rules", kind="rules", settings=RULES, deadline_ms=20_000)
    monitors = [rules, python_monitor("HangsOnModels", 300)]
    with ServicePool(1, HttpOffer(None, gateway_settings(models)), monitors=monitors) as running:
        yield running


@contextmanager
def _asker(pool: ServicePool, monitor: str = "rules", **budget: Any) -> Iterator[Asker]:
    spec = replace(episode_spec(**budget), monitors=(monitor,))
    with pool.lease() as client, listening(client, spec) as episode:
        asker = Asker(episode)
        with closing(asker.http):
            yield asker


def _decisions(asker: Asker) -> list[dict[str, Any]]:
    asker.episode.close()
    return [event for event in asker.episode.events if event["kind"] == "monitor"]


def test_a_refused_request_costs_a_request_and_reaches_no_provider(
    monitored_pool: ServicePool, models: ScriptedModels
) -> None:
    asked_before = len(models.asked)
    with _asker(monitored_pool, model_calls=5, model_tokens=1000) as asker:
        status, answer = asker.ask(CHAT, chat(text="a secret"))
        assert (status, answer["error"]["message"]) == (423, "No secrets.")
        assert asker.left() == {"model_calls": 4, "model_tokens": 1000}
        (call,), (event,) = asker.calls(), _decisions(asker)
    assert len(models.asked) == asked_before
    assert call["status"] == 423
    assert (event["step"], event["stage"], event["number"]) == ("model", "before", 1)
    assert event["decision"]["suspicion"] == 0.5


def test_a_monitor_can_end_the_episode_at_a_request(monitored_pool: ServicePool) -> None:
    with _asker(monitored_pool) as asker:
        assert asker.ask(CHAT, chat(text="stop"))[0] == 410
        assert asker.ask(CHAT, chat())[0] == 410
        asker.episode.close()
    assert asker.episode.evidence.ends == {"agent": EndedByMonitor("rules", "model")}


def test_a_monitor_can_replace_a_request_within_the_budget(
    monitored_pool: ServicePool, script: Script, models: ScriptedModels
) -> None:
    script.says(ScriptedReply(text="ok", usage=(40, 9)))
    with _asker(monitored_pool, model_tokens=2000) as asker:
        assert asker.ask(CHAT, chat(text="swap"))[0] == 200
        assert json.loads(models.asked[-1].body)["messages"][0]["content"] == "swapped"
        assert asker.left() == {"model_tokens": 1951}
        status, answer = asker.ask(CHAT, chat(text="grow"))
        assert (status, "the budget" in answer["error"]["message"]) == (423, True)
        assert asker.left() == {"model_tokens": 1951}


def test_a_withheld_response_is_charged(monitored_pool: ServicePool, script: Script) -> None:
    script.says(ScriptedReply(text="my plan", usage=(40, 9)))
    with _asker(monitored_pool, model_tokens=1000) as asker:
        status, answer = asker.ask(CHAT, chat())
        assert status == 423
        assert "plan" not in str(answer)
        assert asker.left()["model_tokens"] == 951
        (event,) = _decisions(asker)
    assert event["original"]["output"]["body"]["choices"][0]["message"]["content"] == "my plan"


def test_a_monitor_can_replace_a_response(monitored_pool: ServicePool, script: Script) -> None:
    script.says(ScriptedReply(text="ok"))
    with _asker(monitored_pool) as asker:
        assert asker.ask(CHAT, chat(text="rewrite")) == (200, {"rewritten": True})


def test_a_stream_reaches_the_agent_after_the_monitors_have_read_all_of_it(
    monitored_pool: ServicePool, script: Script
) -> None:
    script.says(ScriptedReply(text="one two three"))
    with _asker(monitored_pool) as asker:
        status, body = asker.http.send(CHAT, json.dumps(chat(stream=True)))
        assert status == 200
        assert b"three" in body
        assert body.rstrip().endswith(b"data: [DONE]")
        (event,) = _decisions(asker)
    assert event["decision"]["reason"] == "stream"


def test_a_monitor_that_hangs_on_a_request_ends_the_episode(monitored_pool: ServicePool) -> None:
    with _asker(monitored_pool, "HangsOnModels") as asker:
        assert asker.ask(CHAT, chat())[0] == 410
        asker.episode.close()
    end = MonitorFailed("HangsOnModels", "model", "deadline")
    assert asker.episode.evidence.ends == {"agent": end}


def test_a_replay_ignores_what_monitors_decided_about_models(
    monitored_pool: ServicePool, script: Script
) -> None:
    script.says(ScriptedReply(text="ok"))
    with _asker(monitored_pool) as asker:
        asker.http.rpc("CallTool", {"toolName": "list_accounts"})
        asker.ask(CHAT, chat(text="secret"))
        asker.ask(CHAT, chat(text="stop"))
        asker.episode.close()
    with ServicePool(1) as pool:
        spec = replace(asker.episode.spec, monitors=("rules",))
        assert replay_episode(spec, asker.episode.records, pool).divergence is None
