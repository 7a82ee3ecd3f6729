"""An agent cannot pass its failure off as a provider's, which would leave it unscored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest

from fumehood.gateway.health_check import ATTEMPTS, TEXT
from fumehood.gateway.provider_client import ABANDONED_MS
from fumehood.gateway.settings import ModelsMode
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood.wire.ports import TimeGranted
from tests.parts.http import HttpSeat
from tests.parts.listening import PATIENCE_S, wait_until
from tests.parts.models import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Asker,
    Script,
    chat,
    new_service,
    question,
    with_budget,
)

SAID = {"error": {"message": "as scripted", "type": "scripted"}}


def goes_on(seat: Asker) -> bool:
    """Return whether the agent may still work."""
    status, _ = seat.http.rpc("GetTask", {})
    return status == 200 and seat.episode.unhostable is None


def checks(seat: Asker) -> list[tuple[str, bool]]:
    """Return result and verdict of each health check in the trace."""
    seat.episode.close()
    events = [event for event in seat.episode.events if event["kind"] == "provider_checked"]
    return [(event["result"], event["failed"]) for event in events]


def is_check(asked: AskedOfModel) -> bool:
    return TEXT.encode() in asked.body


def agents(reply: ScriptedReply, check: ScriptedReply) -> Callable[[AskedOfModel], ScriptedReply]:
    """Answer the agent's requests and the gateway's own differently."""
    return lambda asked: check if is_check(asked) else reply


def ends_as_infra(seat: Asker) -> str:
    assert wait_until(lambda: seat.episode.unhostable is not None)
    assert seat.episode.unhostable is not None
    assert seat.episode.unhostable.field == "models"
    return seat.episode.unhostable.reason


WORKS = ScriptedReply(text="OK")
HANGS_UP = ScriptedReply(hangs_up=True)


@pytest.mark.slow
@with_budget(wall_ms=60_000)
@pytest.mark.parametrize("status", [400, 401, 403, 408, 409, 429, 500, 502, 503, 529])
@pytest.mark.parametrize("model", ["m1", "m-of-its-own"])
def test_a_failure_of_one_request_is_a_response_and_uses_the_agents_time(
    seat: Asker, script: Script, status: int, model: str
) -> None:
    script.answers(agents(ScriptedReply(status=status), check=WORKS))
    assert seat.ask(CHAT, chat(model)) == (status, SAID)
    assert goes_on(seat)
    assert [call["status"] for call in seat.calls()] == [status]
    assert not [message for message in seat.episode.messages if isinstance(message, TimeGranted)]
    checked = status in (401, 403, 500, 502, 503, 529)
    assert checks(seat) == ([("answers 200", False)] if checked else [])


@pytest.mark.slow
def test_a_provider_that_hangs_up_on_one_request_works(seat: Asker, script: Script) -> None:
    script.answers(agents(HANGS_UP, check=WORKS))
    status, answer = seat.ask(CHAT, chat())
    assert (status, answer["error"]["code"]) == (417, "request_failed")
    assert goes_on(seat)
    assert checks(seat) == [("answers 200", False)]


@pytest.mark.slow
@pytest.mark.parametrize(("recovers", "status"), [(True, 417), (False, 424)])
def test_a_provider_is_checked_again_without_the_requests_that_the_agent_left(
    script: Script, models: ScriptedModels, recovers: bool, status: int
) -> None:
    loaded = Event()
    loaded.set()

    def overloaded(asked: AskedOfModel) -> ScriptedReply:
        if b"long" in asked.body:
            return ScriptedReply(text="la " * 1_000, pause_s=0.1)
        return WORKS if is_check(asked) and recovers and not loaded.is_set() else HANGS_UP

    script.answers(overloaded)
    before = len(models.asked)

    def checked() -> int:
        return sum(map(is_check, models.asked[before:]))

    with (
        new_service(models, silence_max_s=10 * PATIENCE_S if recovers else 4.0) as seat,
        closing(HttpSeat(seat.episode.directory)) as other,
        ThreadPoolExecutor(2) as agent,
    ):
        with closing(HttpSeat(seat.episode.directory)) as load:
            assert load.open(CHAT, json.dumps(chat(text="long", stream=True))).status == 200
            asking = agent.submit(seat.ask, CHAT, chat())
            assert wait_until(lambda: checked() >= ATTEMPTS)
            assert not asking.done(), "its load may be the reason"
        assert wait_until(lambda: checked() >= 2 * ATTEMPTS)
        if recovers:
            assert not asking.done(), "the provider may work on a request that was left"
        later = agent.submit(other.send, CHAT, json.dumps(chat(text="later")))
        loaded.clear()
        assert asking.result(PATIENCE_S)[0] == status
        if recovers:
            assert later.result(PATIENCE_S)[0] == 417
            assert goes_on(seat)
            assert checks(seat)[0] == ("answers 200", False)
        else:
            ends_as_infra(seat)
        asked = [b"later" in each.body for each in models.asked[before:]]
        known = [is_check(each) for each in models.asked[before:]]
        assert True not in asked or asked.index(True) > known.index(True) + 2 * ATTEMPTS


@pytest.mark.slow
def test_a_provider_may_work_on_a_request_that_a_proxy_gave_up(
    script: Script, models: ScriptedModels
) -> None:
    busy, patience = Event(), Event()
    busy.set()
    gave_up, refuses = ScriptedReply(status=504), ScriptedReply(status=503)

    def behind_a_proxy(asked: AskedOfModel) -> ScriptedReply:
        if is_check(asked):
            return refuses if busy.is_set() else WORKS
        patience.wait(ABANDONED_MS / 1000)
        return gave_up

    script.answers(behind_a_proxy)
    before = len(models.asked)
    with (
        new_service(models, silence_max_s=10 * PATIENCE_S) as seat,
        ThreadPoolExecutor(1) as agent,
    ):
        asking = agent.submit(seat.ask, CHAT, chat())
        assert wait_until(lambda: sum(map(is_check, models.asked[before:])) >= 2 * ATTEMPTS)
        assert not asking.done(), "the provider may still work on the request"
        busy.clear()
        assert asking.result(PATIENCE_S)[0] == 504
        assert goes_on(seat)


@pytest.mark.slow
def test_a_proxy_that_gives_up_with_408_may_have_left_a_request_at_the_provider(
    script: Script, models: ScriptedModels
) -> None:
    busy, patience = Event(), Event()
    gave_up, refuses = ScriptedReply(status=408), ScriptedReply(status=503)

    def behind_a_proxy(asked: AskedOfModel) -> ScriptedReply:
        if b"long" in asked.body:
            busy.set()
            patience.wait(ABANDONED_MS / 1000)
            return gave_up
        return refuses if busy.is_set() else WORKS

    script.answers(behind_a_proxy)
    before = len(models.asked)
    with (
        new_service(models, silence_max_s=10 * PATIENCE_S) as seat,
        ThreadPoolExecutor(1) as agent,
    ):
        assert seat.ask(CHAT, chat(text="long"))[0] == 408
        asking = agent.submit(seat.ask, CHAT, chat())
        assert wait_until(lambda: sum(map(is_check, models.asked[before:])) >= 2 * ATTEMPTS)
        assert not asking.done(), "the provider may still work on the request"
        busy.clear()
        assert asking.result(PATIENCE_S)[0] == 503
        assert goes_on(seat)


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403, 500])
def test_an_agent_that_chooses_an_api_that_fails_for_everybody_fails_itself(
    models: ScriptedModels, script: Script, status: int
) -> None:
    fails = ScriptedReply(status=status)
    script.answers(lambda asked: fails if asked.path == RESPONSES else WORKS)
    with new_service(models) as seat:
        assert seat.ask(RESPONSES, question(RESPONSES)) == (status, SAID)
        assert goes_on(seat)
        assert seat.ask(CHAT, chat())[0] == 200
        script.answers(lambda asked: fails if asked.path == CHAT else WORKS)
        assert seat.ask(CHAT, chat())[0] == 424, "it answered before"
        ends_as_infra(seat)
        first = (f"answers {status}, but answers {CHAT}", False)
        assert checks(seat) == [first, (f"answers {status}", True)]


@pytest.mark.slow
def test_a_busy_health_check_is_no_evidence(seat: Asker, script: Script) -> None:
    script.answers(agents(HANGS_UP, check=ScriptedReply(status=429)))
    assert seat.ask(CHAT, chat())[0] == 417
    assert goes_on(seat)
    assert checks(seat) == [("answers 429", False)]


@pytest.mark.slow
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("status", [401, 403, 500, 503, 529])
def test_a_failed_health_check_is_an_infrastructure_failure(
    seat: Asker, script: Script, models: ScriptedModels, path: str, status: int
) -> None:
    script.says(ScriptedReply(status=status))
    before = len(models.asked)
    answered, answer = seat.ask(path, question(path))
    assert (answered, answer["error"]["code"]) == (424, "not_available")
    reason = ends_as_infra(seat)
    assert re.fullmatch(
        rf"scripted at http://[\w.]+:\d+/v1\S*: answers {status}; "
        rf"a request of the gateway's own: answers {status}",
        reason,
    )
    assert checks(seat) == [(f"answers {status}", True)]
    own = [asked for asked in models.asked[before:] if asked.path == path][-1]
    assert own.request["model"] == "m1"
    assert "hello" not in own.body.decode(), "it contains nothing of the agent"


@pytest.mark.slow
def test_a_provider_that_hangs_up_on_every_request_is_an_infrastructure_failure(
    seat: Asker, script: Script
) -> None:
    script.says(HANGS_UP)
    assert seat.ask(CHAT, chat())[0] == 424
    assert "does not answer" in ends_as_infra(seat)


@pytest.mark.slow
def test_one_failed_attempt_of_a_health_check_is_no_evidence(seat: Asker, script: Script) -> None:
    own = [HANGS_UP, WORKS]
    script.answers(lambda asked: own.pop(0) if is_check(asked) else HANGS_UP)
    assert seat.ask(CHAT, chat())[0] == 417
    assert goes_on(seat)


@pytest.mark.slow
def test_an_agent_cannot_choose_the_model_of_a_health_check(
    seat: Asker, script: Script, models: ScriptedModels
) -> None:
    script.says(ScriptedReply(status=503))
    before = len(models.asked)
    assert seat.ask(CHAT, chat("m-that-always-fails")) == (503, SAID)
    assert goes_on(seat), "the provider lists its models"
    assert not [asked for asked in models.asked[before:] if is_check(asked)]


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_cannot_list_models_is_an_infrastructure_failure_for_any_model(
    seat: Asker,
    script: Script,
    models: ScriptedModels,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script.says(ScriptedReply(status=status))
    monkeypatch.setattr(models, "list_status", status)
    assert seat.ask(CHAT, chat("m-of-its-own"))[0] == 424
    ends_as_infra(seat)


def test_a_key_that_cannot_list_models_is_no_excuse_for_a_model_that_it_cannot_use(
    seat: Asker, script: Script, models: ScriptedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.answers(lambda asked: WORKS if is_check(asked) else ScriptedReply(status=403))
    monkeypatch.setattr(models, "list_status", 403)
    assert seat.ask(CHAT, chat("m-of-its-own")) == (403, SAID)
    assert goes_on(seat)


def test_a_key_that_is_revoked_is_an_infrastructure_failure(seat: Asker, script: Script) -> None:
    script.says(WORKS, ScriptedReply(status=401))
    assert seat.ask(CHAT, chat())[0] == 200
    assert seat.ask(CHAT, chat())[0] == 424
    ends_as_infra(seat)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["m1", "m-of-its-own"])
def test_in_replay_an_unrecorded_request_is_a_failure_of_the_agent(
    models: ScriptedModels, model: str
) -> None:
    with new_service(models, mode=ModelsMode.REPLAY) as seat:
        status, answer = seat.ask(CHAT, chat(model))
        assert (status, answer["error"]["code"]) == (412, "not_recorded")
        assert goes_on(seat)
        (call,) = seat.calls()
        assert (call["model"], call["status"]) == (model, 412)
        assert call["spent"]["model_tokens"] == 0
