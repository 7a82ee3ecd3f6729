"""The limits of a provider are shared fairly over episodes, and their queue costs no time."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from threading import Event, Lock
from typing import Any

import pytest

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.ledger import Budget
from fumehood.gateway.requests import REQUESTS_MAX
from fumehood.gateway.settings import Provider
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood.wire.ports import TimeGranted
from tests.parts.http import HttpSeat
from tests.parts.listening import PATIENCE_S, Listened, listening, wait_until
from tests.parts.models import CHAT, Asker, chat, gateway_settings, new_service
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

LARGE, SMALL = 12, 2
BATCH = 32


def limited(models: ScriptedModels, **limits: int) -> dict[str, tuple[Provider, ...]]:
    provider = Provider(name="p", address=models.address, **limits)  # type: ignore[arg-type]
    return {"providers": (provider,)}


def test_an_episode_with_many_requests_does_not_delay_another_one() -> None:
    began: list[str] = []
    lock, all_sent = Lock(), Event()

    def answer(asked: AskedOfModel) -> ScriptedReply:
        with lock:
            began.append(json.loads(asked.body)["messages"][0]["content"])
        assert all_sent.wait(PATIENCE_S)
        return ScriptedReply(text="ok", pause_s=0.05)

    def ask(directory: str, text: str) -> int:
        with closing(HttpSeat(directory)) as http:
            return http.send(CHAT, json.dumps(chat(text=text)))[0]

    with ScriptedModels(answer) as models:
        offer = HttpOffer(None, gateway_settings(models, **limited(models, concurrent_calls=1)))
        specs = [episode_spec(episode_id=name, model_calls=100) for name in ("many", "few")]
        with (
            ServicePool(1, ServiceOptions(http=offer)) as pool,
            pool.lease() as client,
            listening(client, specs[0]) as many,
            listening(client, specs[1]) as few,
            ThreadPoolExecutor(LARGE + SMALL) as threads,
        ):
            large = [threads.submit(ask, many.directory, "many") for _ in range(LARGE)]
            assert wait_until(lambda: len(began) > 0)
            small = [threads.submit(ask, few.directory, "few") for _ in range(SMALL)]
            assert wait_until(lambda: calls_left(many) == 100 - LARGE)
            assert wait_until(lambda: calls_left(few) == 100 - SMALL)
            all_sent.set()
            assert {one.result() for one in (*small, *large)} == {200}
    assert "many" in began[began.index("few") :], "the small episode did not wait for all others"
    assert len(began) - 1 - began[::-1].index("few") < LARGE


@pytest.mark.parametrize("world", ["crud", "sql"])
def test_an_agent_that_does_not_read_its_response_keeps_no_place(world: str) -> None:
    """The world ``sql`` needs a checker, so the service's process hosts its episode."""
    text = "x" * 4_000_000
    state: dict[str, Any] = {"world": "sql", "state": {"tables": []}} if world == "sql" else {}
    with ScriptedModels(lambda _: ScriptedReply(text=text)) as models:
        offer = HttpOffer(None, gateway_settings(models, **limited(models, concurrent_calls=1)))
        with (
            ServicePool(1, ServiceOptions(http=offer, worlds=["crud", world])) as pool,
            pool.lease() as client,
            listening(client, episode_spec(episode_id="deaf", **state)) as deaf,
            listening(client, episode_spec(episode_id="other")) as other,
            socket.socket(socket.AF_UNIX) as connection,
            closing(HttpSeat(other.directory)) as http,
        ):
            body = json.dumps(chat(stream=True)).encode()
            head = f"POST {CHAT} HTTP/1.1\r\nhost: box\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.connect(f"{deaf.directory}/http.sock")
            connection.sendall(head.encode() + body)
            assert wait_until(lambda: len(models.asked) == 1)
            assert http.send(CHAT, json.dumps(chat()))[0] == 200


def test_a_seat_has_a_limit_of_open_requests_that_another_seat_does_not_share() -> None:
    answers = Event()

    def answer(_: AskedOfModel) -> ScriptedReply:
        assert answers.wait(PATIENCE_S)
        return ScriptedReply(text="ok")

    with ScriptedModels(answer) as models:
        offer = HttpOffer(None, gateway_settings(models, calls_at_once=2))
        budget = Budget(model_calls=1_000)
        seats = [
            SeatSpec(name=name, instruction="Ask.", budget=budget) for name in ("busy", "other")
        ]
        with (
            ServicePool(1, ServiceOptions(http=offer)) as pool,
            pool.lease() as client,
            listening(client, episode_spec(seats=seats)) as episode,
            closing(HttpSeat(episode.directories["other"])) as other,
        ):
            leave_open(episode, REQUESTS_MAX)
            with closing(HttpSeat(episode.directory)) as busy:
                status, refused = busy.send(CHAT, json.dumps(chat()))
            assert status == 413
            assert "at most 256 open requests" in json.loads(refused)["error"]["message"]
            answers.set()
            assert other.send(CHAT, json.dumps(chat()))[0] == 200


def test_the_requests_of_an_episode_that_has_ended_keep_no_place() -> None:
    answers = Event()

    def answer(asked: AskedOfModel) -> ScriptedReply:
        if asked.request["messages"][0]["content"] == "left":
            assert answers.wait(PATIENCE_S)
        return ScriptedReply(text="ok")

    with ScriptedModels(answer) as models:
        offer = HttpOffer(None, gateway_settings(models, **limited(models, concurrent_calls=1)))
        with (
            ServicePool(1, ServiceOptions(http=offer)) as pool,
            pool.lease() as client,
            listening(client, episode_spec(episode_id="other")) as other,
            closing(HttpSeat(other.directory)) as http,
        ):
            with listening(client, episode_spec(episode_id="ended")) as ended:
                with closing(HttpSeat(ended.directory)) as left:
                    left.connection.request("POST", CHAT, json.dumps(chat(text="left")))
                    assert wait_until(lambda: len(models.asked) == 1)
                ended.close()
            assert http.send(CHAT, json.dumps(chat()))[0] == 200
            answers.set()


def leave_open(episode: Listened, requests: int) -> None:
    """Send requests of the first seat, and close each connection before its answer."""
    for sent in range(BATCH, requests + BATCH, BATCH):
        with ExitStack() as stack:
            for _ in range(BATCH):
                http = stack.enter_context(closing(HttpSeat(episode.directory)))
                http.connection.request("POST", CHAT, json.dumps(chat()))
            # Of a closed connection, the body of a request is not read.
            assert wait_until(partial(has_left, episode, 1_000 - sent))


def test_a_seat_that_waits_for_its_own_request_gets_no_time() -> None:
    with (
        ScriptedModels(lambda _: ScriptedReply(text="ok", pause_s=0.3)) as models,
        new_service(models, **limited(models, concurrent_calls=1)) as seat,
        ThreadPoolExecutor(1) as threads,
    ):
        with closing(HttpSeat(seat.episode.directory)) as http:
            first = threads.submit(http.send, CHAT, json.dumps(chat(text="first")))
            assert wait_until(lambda: len(models.asked) == 1)
            assert seat.ask(CHAT, chat(text="second"))[0] == 200
            assert first.result()[0] == 200
        assert granted_ms(seat) < 200, "its own request used the place"


def test_the_time_in_the_queue_behind_another_episode_is_granted() -> None:
    waits = Event()

    def answer(_: AskedOfModel) -> ScriptedReply:
        assert waits.wait(PATIENCE_S)
        return ScriptedReply(text="ok", pause_s=0.5)

    with ScriptedModels(answer) as models:
        offer = HttpOffer(None, gateway_settings(models, **limited(models, concurrent_calls=1)))
        specs = [
            episode_spec(episode_id=name, wall_ms=600_000, model_calls=100)
            for name in ("one", "two")
        ]
        with (
            ServicePool(1, ServiceOptions(http=offer)) as pool,
            pool.lease() as client,
            listening(client, specs[0]) as one,
            listening(client, specs[1]) as two,
            ThreadPoolExecutor(2) as threads,
        ):
            first, second = Asker(one), Asker(two)
            with closing(first.http), closing(second.http):
                busy = threads.submit(first.ask, CHAT, chat())
                assert wait_until(lambda: len(models.asked) == 1)
                behind = threads.submit(second.ask, CHAT, chat())
                assert wait_until(lambda: calls_left(two) == 99)
                waits.set()
                assert behind.result()[0] == 200
                assert busy.result()[0] == 200
                assert wait_until(lambda: granted_ms(second) > 0)
                assert granted_ms(first) == 0


def has_left(episode: Listened, calls: int) -> bool:
    return calls_left(episode) == calls


def calls_left(episode: Listened) -> int:
    seat = Asker(episode)
    with closing(seat.http):
        return seat.left()["model_calls"]


def granted_ms(seat: Asker) -> int:
    messages = seat.episode.messages
    return sum(message.granted_ms for message in messages if isinstance(message, TimeGranted))
