"""An agent cannot pass its failure off as a provider's, which would leave it unscored."""

from __future__ import annotations

import pytest

from fumehood.gateway.settings import ModelsMode
from fumehood.testing.scripted_models import ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood.wire.ports import TimeGranted
from tests.parts.listening import wait_until
from tests.parts.models import CHAT, Asker, Script, chat, new_service, with_budget

SAID = {"error": {"message": "as scripted", "type": "scripted"}}


def goes_on(seat: Asker) -> bool:
    """Return whether the agent may still work."""
    status, _ = seat.http.rpc("GetTask", {})
    return status == 200 and seat.episode.unhostable is None


@with_budget(wall_ms=60_000)
@pytest.mark.parametrize("status", [408, 409, 500, 502, 503])
def test_a_lasting_failure_is_a_response_and_uses_the_agents_time(
    seat: Asker, script: Script, models: ScriptedModels, status: int
) -> None:
    script.says(ScriptedReply(status=status))
    before = len(models.asked)
    assert seat.ask(CHAT, chat()) == (status, SAID)
    assert len(models.asked) - before == 6
    assert goes_on(seat)
    assert [call["status"] for call in seat.calls()] == [status]
    assert not [message for message in seat.episode.messages if isinstance(message, TimeGranted)]


@pytest.mark.parametrize("status", [429, 529])
def test_a_provider_that_stays_busy_is_an_infrastructure_failure(
    seat: Asker, script: Script, status: int
) -> None:
    script.says(ScriptedReply(status=status))
    answered, answer = seat.ask(CHAT, chat())
    assert (answered, answer["error"]["code"]) == (424, "not_available")
    assert wait_until(lambda: seat.episode.unhostable is not None)
    assert seat.episode.unhostable is not None
    assert seat.episode.unhostable.field == "models"
    assert seat.episode.unhostable.reason == f"scripted: answers {status} (6 attempts)"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_never_worked_is_an_infrastructure_failure_for_a_model_of_the_run(
    script: Script, models: ScriptedModels, status: int
) -> None:
    script.says(ScriptedReply(status=status))
    with new_service(models) as seat:
        assert seat.ask(CHAT, chat("m-of-its-own")) == (status, SAID)
        assert goes_on(seat)
        assert seat.ask(CHAT, chat())[0] == 424
        assert wait_until(lambda: seat.episode.unhostable is not None)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_cannot_list_models_is_an_infrastructure_failure_for_any_model(
    script: Script, models: ScriptedModels, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.says(ScriptedReply(status=status))
    monkeypatch.setattr(models, "list_status", status)
    with new_service(models, named=frozenset()) as seat:
        assert seat.ask(CHAT, chat("m-of-its-own"))[0] == 424
        assert wait_until(lambda: seat.episode.unhostable is not None)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_after_the_key_has_worked_is_a_response(
    seat: Asker, script: Script, status: int
) -> None:
    script.says(ScriptedReply(text="ok"), ScriptedReply(status=status))
    assert seat.ask(CHAT, chat())[0] == 200
    assert seat.ask(CHAT, chat()) == (status, SAID)
    assert goes_on(seat)


def test_in_replay_an_unrecorded_model_of_the_run_voids_the_episode(models: ScriptedModels) -> None:
    with new_service(models, mode=ModelsMode.REPLAY) as seat:
        status, answer = seat.ask(CHAT, chat("m-of-its-own"))
        assert (status, answer["error"]["code"]) == (412, "not_recorded")
        assert goes_on(seat)
        assert seat.ask(CHAT, chat())[1]["error"]["code"] == "not_recorded"
        assert wait_until(lambda: seat.episode.unhostable is not None)


def test_an_unrecorded_request_is_in_the_trace(models: ScriptedModels) -> None:
    with new_service(models, mode=ModelsMode.REPLAY) as seat:
        seat.ask(CHAT, chat("m-of-its-own"))
        (call,) = seat.calls()
        assert (call["model"], call["status"]) == ("m-of-its-own", 412)
        assert call["spent"]["model_tokens"] == 0
