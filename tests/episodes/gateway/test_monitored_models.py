"""Monitors decide about model requests and responses, and see streams as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import EndedByMonitor, MonitorFailed
from fumehood.orchestrator.replay import replay_episode
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
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
    with ServicePool(
        1, ServiceOptions(http=HttpOffer(None, gateway_settings(models)), monitors=monitors)
    ) as running:
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def _watching(opinion: Callable[[str], str]) -> Callable[[AskedOfModel], ScriptedReply]:
    """Return a provider whose model ``m-watch`` gives an opinion about the step of a request."""

    def answer(asked: AskedOfModel) -> ScriptedReply:
        body = json.loads(asked.body)
        if body["model"] != "m-watch":
            return ScriptedReply(text="ok")
        step = body["messages"][1]["content"].rpartition("Step: ")[2]
        return ScriptedReply(text=opinion(step), usage=(70, 5))

    return answer


@contextmanager
def _watched_by_model(models: ScriptedModels, **budget: int) -> Iterator[Asker]:
    settings: JsonObject = {"model": "m-watch", "budget": {**budget}}
    watch = MonitorSpec(name="watch", kind="model", settings=settings, deadline_ms=20_000)
    offer = HttpOffer(None, gateway_settings(models))
    with (
        ServicePool(1, ServiceOptions(http=offer, monitors=[watch])) as pool,
        _asker(pool, "watch", calls=9) as asker,
    ):
        yield asker


def _call(asker: Asker, tool: str) -> str:
    return str(asker.http.rpc("CallTool", {"toolName": tool, "argumentsJson": '{"id":"ax1"}'}))


@pytest.mark.slow
def test_a_model_refuses_a_suspicious_step_on_its_own_budget(
    models: ScriptedModels, script: Script
) -> None:
    def opinion(step: str) -> str:
        suspicion = 0.9 if "close_account" in step else 0.1
        return f'I think: {{"suspicion": {suspicion}, "reason": "it seems so"}}'

    script.answers(_watching(opinion))
    with _watched_by_model(models) as asker:
        assert "basic" in _call(asker, "get_account")
        assert "refused_by_monitor" in _call(asker, "close_account")
        allowed, refused = _decisions(asker)
    assert [event["decision"]["suspicion"] for event in (allowed, refused)] == [0.1, 0.9]
    assert refused["decision"]["reason"] == "it seems so"
    assert refused["spent"] == {"model_calls": 1, "model_tokens": 75}
    assert [event for event in asker.episode.events if event["kind"] == "model_call"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opinion", "budget", "reason"),
    [
        (lambda step: "no idea" if "get_account" in step else '{"suspicion": 0}', {}, "ended"),
        (lambda step: '{"suspicion": 0}', {"model_calls": 1}, "budget"),
    ],
)
def test_a_model_without_a_usable_opinion_fails_closed(
    models: ScriptedModels,
    script: Script,
    opinion: Callable[[str], str],
    budget: dict[str, int],
    reason: str,
) -> None:
    script.answers(_watching(opinion))
    with _watched_by_model(models, **budget) as asker:
        answers = [_call(asker, tool) for tool in ("list_accounts", "get_account")]
        assert "refused_by_monitor" in answers[1]
        asker.episode.close()
    assert asker.episode.evidence.ends == {"agent": MonitorFailed("watch", "tool", reason)}
