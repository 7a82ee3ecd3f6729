"""The requests of a judge keep the limits of its provider, from all threads together."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pytest

from fumehood.gateway.from_host import HostModels
from fumehood.gateway.settings import GatewaySettings, Provider
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.parts.listening import wait_until

pytestmark = pytest.mark.slow

BODY = json.dumps({"model": "m", "messages": []}).encode()


def test_questions_of_several_threads_share_the_limit_of_parallel_requests() -> None:
    lock, running, most = Lock(), 0, 0

    def answer(_: AskedOfModel) -> ScriptedReply:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        wait_until(lambda: running > 1, patience_s=0.1)
        with lock:
            running -= 1
        return ScriptedReply(text="yes")

    with ScriptedModels(answer) as models, ThreadPoolExecutor(3) as threads:
        provider = Provider(name="p", address=models.address, concurrent_calls=1)
        judge = HostModels(GatewaySettings(providers=(provider,)), provider)
        exchanges = list(threads.map(judge.ask, [[BODY] * 2] * 3))
    assert [exchange.status for question in exchanges for exchange in question] == [200] * 6
    assert most == 1


def test_the_exchange_of_a_judge_is_recorded_as_json() -> None:
    with ScriptedModels([ScriptedReply(text="yes")]) as models:
        provider = Provider(name="p", address=models.address)
        (exchange,) = HostModels(GatewaySettings(providers=(provider,)), provider).ask([BODY])
    assert exchange.request == BODY
    assert exchange.content_type == "application/json"
    assert json.loads(exchange.response)["choices"]


@pytest.mark.slow
def test_a_judge_without_a_provider_has_failed_exchanges() -> None:
    provider = Provider(name="p", address="http://127.0.0.1:9")
    settings = GatewaySettings(providers=(provider,), attempts=1)
    (exchange,) = HostModels(settings, provider).ask([BODY])
    assert exchange.status == 0
