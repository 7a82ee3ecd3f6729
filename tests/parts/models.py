"""Scripted providers behind a gateway, and questions to ask of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.http import HttpSeat
from tests.parts.listening import Listened, listening
from tests.parts.specs import episode_spec

KEY = "sk-never-to-be-seen-0123456789"
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"


def gateway_settings(models: ScriptedModels, **change: Any) -> GatewaySettings:
    """Return a gateway to one scripted provider of all models named ``m…``; a run uses ``m1``."""
    plain: dict[str, Any] = {
        "mode": ModelsMode.LIVE,
        "providers": (Provider(name="scripted", address=models.address, models=("m*",), key=KEY),),
        "named": frozenset({"m1"}),
        "prices": {"m-cheap": Price(1.0, 2.0), "m-dear": Price(1000.0, 1000.0)},
        "wait_max_s": 0.2,
        "silence_max_s": 10.0,
    }
    return GatewaySettings(**{**plain, **change})


def chat(model: str = "m1", text: str = "hello", **more: Any) -> dict[str, Any]:
    """Return a request for a chat completion."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 100,
        **more,
    }


def question(path: str, model: str = "m1", **more: Any) -> dict[str, Any]:
    """Return a request in the words of ``path``."""
    if path == RESPONSES:
        return {"model": model, "input": "hello", "max_output_tokens": 100, **more}
    return chat(model, **more)


class Script:
    """What the provider says next; every test sets it anew."""

    def __init__(self) -> None:
        self.replies: list[ScriptedReply] = []
        self._answer: Callable[[AskedOfModel], ScriptedReply] | None = None

    def says(self, *replies: ScriptedReply) -> None:
        self.replies, self._answer = list(replies), None

    def answers(self, answer: Callable[[AskedOfModel], ScriptedReply]) -> None:
        self._answer = answer

    def __call__(self, asked: AskedOfModel) -> ScriptedReply:
        if self._answer is not None:
            return self._answer(asked)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class Asker:
    """An agent that asks models at its seat."""

    def __init__(self, episode: Listened) -> None:
        self.episode = episode
        self.http = HttpSeat(episode.directory)

    def ask(self, path: str, request: Any) -> tuple[int, Any]:
        status, body = self.http.send(
            path, request if isinstance(request, str) else json.dumps(request)
        )
        return status, json.loads(body)

    def left(self) -> dict[str, int]:
        remaining = self.http.rpc("GetTask", {})[1].get("remaining", {})
        return {name: int(amount) for name, amount in remaining.items()}

    def calls(self) -> list[dict[str, Any]]:
        self.episode.close()
        return [event for event in self.episode.events if event["kind"] == "model_call"]


@contextmanager
def new_service(models: ScriptedModels, **change: Any) -> Iterator[Asker]:
    """Open a seat in a service without earlier model requests."""
    offer = HttpOffer(None, gateway_settings(models, **change))
    with (
        ServicePool(1, ServiceOptions(http=offer)) as pool,
        pool.lease() as client,
        listening(client, episode_spec()) as episode,
    ):
        asker = Asker(episode)
        with closing(asker.http):
            yield asker


def with_budget(**budget: int) -> pytest.MarkDecorator:
    """Give the fixture ``seat`` of a test a budget."""
    return pytest.mark.parametrize("seat", [budget], indirect=True)
