"""The gateway charges model requests, even if a provider reports false usage."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import Event
from typing import Any

import pytest

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
    question,
    with_budget,
)

each_path = pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])


def granted(seat: Asker) -> list[int]:
    """Return the times that were given back so far, milliseconds."""
    return [one.granted_ms for one in seat.episode.messages if isinstance(one, TimeGranted)]


@each_path
@with_budget(model_tokens=100_000)
def test_a_response_is_forwarded_and_charged_as_reported(
    seat: Asker, script: Script, path: str
) -> None:
    script.says(ScriptedReply(text="It is so.", usage=(30, 7)))
    status, answer = seat.ask(path, question(path))
    assert status == 200
    assert "It is so." in json.dumps(answer)
    assert seat.left()["model_tokens"] == 100_000 - 37
    (call,) = seat.calls()
    assert (call["model"], call["status"], call["spent"]["model_tokens"]) == ("m1", 200, 37)


@with_budget(model_calls=1)
def test_a_budget_of_one_call_admits_one_of_fifty_concurrent_calls(
    seat: Asker, script: Script, models: ScriptedModels
) -> None:
    script.says(ScriptedReply(text="once", pause_s=0.3))
    before = len(models.asked)

    def ask(_: int) -> int:
        with closing(HttpSeat(seat.episode.directory)) as http:
            return http.send(CHAT, json.dumps(chat()))[0]

    with ThreadPoolExecutor(50) as threads:
        statuses = list(threads.map(ask, range(50)))
    assert sorted(set(statuses)) in ([200, 402], [200, 402, 410])
    assert statuses.count(200) == 1
    assert len(models.asked) - before == 1
    seat.episode.close()
    end = {"outcome": "out_of_budget", "kind": "model_calls"}
    assert [event["end"] for event in seat.episode.events if event["kind"] == "seat_ended"] == [end]


@with_budget(model_calls=2)
def test_a_request_for_several_answers_costs_a_call_for_each(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="first"))
    assert seat.ask(CHAT, {**chat(), "n": 1})[0] == 200
    assert seat.left()["model_calls"] == 1
    assert seat.ask(CHAT, {**chat(), "n": 100})[0] == 402
    assert [call["spent"]["model_calls"] for call in seat.calls()] == [1]


@with_budget(model_tokens=2_000)
@pytest.mark.parametrize("usage", [None, (0, 0), (1, 0)])
def test_missing_or_impossible_usage_is_charged_as_reserved(
    seat: Asker, script: Script, usage: tuple[int, int] | None
) -> None:
    script.says(ScriptedReply(text="word " * 90, usage=usage))
    request = chat()
    statuses = [seat.ask(CHAT, request)[0] for _ in range(30)]
    reserved = 100 + (len(json.dumps(request)) if usage != (1, 0) else 1)
    assert statuses.count(200) <= 2_000 // reserved
    assert statuses[-1] == 410


@with_budget(model_tokens=100_000)
def test_impossible_usage_of_a_long_response_is_ignored(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="word " * 5_000, usage=(20, 1)))
    seat.ask(CHAT, chat(max_tokens=30_000))
    assert seat.left()["model_tokens"] == 100_000 - 20 - 30_000


@with_budget(model_tokens=100_000)
def test_impossible_usage_of_a_long_request_is_ignored(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="ok", usage=(1, 1)))
    request = chat(text="word " * 1_000)
    seat.ask(CHAT, request)
    assert seat.left()["model_tokens"] == 100_000 - len(json.dumps(request)) - 1


@with_budget(model_tokens=100_000)
def test_an_image_may_have_few_tokens_for_its_size(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="ok", usage=(300, 1)))
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 60_000}"}}
    seat.ask(CHAT, chat(messages=[{"role": "user", "content": [picture]}]))
    assert seat.left()["model_tokens"] == 100_000 - 301


@with_budget(model_tokens=200_000)
@pytest.mark.parametrize("stream", [False, True])
def test_instructions_echoed_in_a_response_are_not_output(
    seat: Asker, script: Script, *, stream: bool
) -> None:
    instructions = "Be good. " * 4_000
    script.says(ScriptedReply(text="I am.", usage=(8_000, 3), echo=instructions))
    seat.http.send(
        RESPONSES, json.dumps(question(RESPONSES, instructions=instructions, stream=stream))
    )
    assert wait_until(lambda: seat.left()["model_tokens"] == 200_000 - 8_003)


@with_budget(model_tokens=2_000, model_microusd=2_000)
def test_reported_usage_beyond_the_budget_is_charged_and_ends_the_work(
    seat: Asker, script: Script
) -> None:
    script.says(ScriptedReply(text="ok", usage=(10**12, 10**12)))
    assert [seat.ask(CHAT, chat("m-cheap"))[0] for _ in range(3)] == [200, 402, 410]
    (call,) = seat.calls()
    used = 2 * 10**12
    assert call["spent"] == {
        "model_calls": 1,
        "model_tokens": used,
        "model_microusd": 10**12 + used,
    }


def all_at_once(seat: Asker, request: str, number: int) -> list[int]:
    def ask(_: int) -> int:
        with closing(HttpSeat(seat.episode.directory)) as http:
            return http.send(CHAT, request)[0]

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(ask, range(number)))


@with_budget(model_tokens=20_000)
@pytest.mark.parametrize("usage", [None, (1, 1), (200, 10)])
def test_the_sum_of_parallel_requests_is_within_the_budget(
    seat: Asker, script: Script, usage: tuple[int, int] | None
) -> None:
    script.says(ScriptedReply(text="word " * 90, usage=usage, pause_s=0.1))
    statuses = all_at_once(seat, json.dumps(chat(text="word " * 100)), 50)
    spent = [call["spent"]["model_tokens"] for call in seat.calls()]
    assert statuses.count(200) == len(spent) > 0
    assert sum(spent) <= 20_000


@pytest.mark.parametrize("first_usage", [(200_000, 26), (20, 5)], ids=["at_once", "after_a_true"])
@with_budget(model_tokens=20_000, model_microusd=10_000)
def test_fifty_parallel_requests_of_understated_size_exceed_the_budget_by_one_request(
    seat: Asker, script: Script, first_usage: tuple[int, int]
) -> None:
    large = ScriptedReply(text="ok", usage=(200_000, 26), pause_s=0.05)
    script.says(ScriptedReply(text="ok", usage=first_usage), large)
    if first_usage != large.usage:
        assert seat.ask(CHAT, chat("m-cheap"))[0] == 200
    # An image's tokens cannot be known from its size.
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    request = chat("m-cheap", messages=[{"role": "user", "content": [picture]}])
    statuses = all_at_once(seat, json.dumps(request), 50)
    assert statuses.count(200) == 1
    calls = seat.calls()
    over = [call for call in calls if call["spent"]["model_tokens"] == 200_026]
    assert len(over) == 1
    assert over[0]["spent"]["model_microusd"] == 200_000 + 2 * 26


@with_budget(model_tokens=20_000)
def test_fifty_parallel_texts_with_a_false_report_exceed_the_budget_by_one_request(
    seat: Asker, script: Script
) -> None:
    script.says(ScriptedReply(text="ok", usage=(200_000, 26), pause_s=0.05))
    assert all_at_once(seat, json.dumps(chat()), 50).count(200) == 1
    assert [call["spent"]["model_tokens"] for call in seat.calls()] == [200_026]


@pytest.mark.slow
@with_budget(model_tokens=20_000)
@pytest.mark.parametrize("first", ["an error", "a part", "without usage"])
def test_an_incomplete_answer_does_not_show_that_reservations_are_exact(
    seat: Asker, script: Script, first: str
) -> None:
    def answer(asked: AskedOfModel) -> ScriptedReply:
        if b"an error" in asked.body:
            return ScriptedReply(status=400)
        # Like a provider that adds a long prompt.
        usage = None if b"without usage" in asked.body else (5_000, 1)
        parts = 20 if b"a part" in asked.body else 1
        return ScriptedReply(text="la " * parts, usage=usage, pause_s=0.1)

    script.answers(answer)
    streams = first != "an error"
    opening = closing(HttpSeat(seat.episode.directory))
    with opening as http, http.open(CHAT, json.dumps(chat(text=first, stream=streams))) as response:
        if first != "a part":
            response.read()
    more: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    all_at_once(seat, json.dumps(chat(**(more if streams else {}))), 30)
    spent = sum(call["spent"]["model_tokens"] for call in seat.calls())
    assert spent <= 20_000 + 5_001


@with_budget(model_tokens=1_000_000)
def test_requests_run_one_by_one_after_an_overrun(
    seat: Asker, script: Script, models: ScriptedModels
) -> None:
    script.says(ScriptedReply(text="ok", usage=(400_000, 1)))
    assert seat.ask(CHAT, chat())[0] == 200
    script.says(ScriptedReply(text="ok", usage=(700_000, 1), pause_s=0.05))
    before = len(models.asked)
    assert all_at_once(seat, json.dumps(chat()), 20).count(200) == 1
    assert len(models.asked) - before == 1


@with_budget(model_microusd=1_000)
def test_money_is_counted_by_the_price_table(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="ok", usage=(50, 10)))
    assert seat.ask(CHAT, chat("m-cheap"))[0] == 200
    assert seat.left()["model_microusd"] == 1_000 - 50 - 20
    assert seat.ask(CHAT, chat("m-of-unknown-price"))[1]["error"]["code"] == "no_price"
    status, answer = seat.ask(CHAT, chat("m-dear"))
    assert (status, answer["error"]["code"]) == (402, "out_of_budget")


@pytest.mark.slow
@with_budget(wall_ms=600_000, model_calls=10)
def test_the_delay_by_a_busy_provider_is_not_charged_to_the_agent(
    seat: Asker, script: Script, models: ScriptedModels
) -> None:
    busy = ScriptedReply(status=429, headers={"retry-after": "0.2"})
    script.says(
        busy, ScriptedReply(status=503), ScriptedReply(status=529), ScriptedReply(text="at last")
    )
    before, began_s = len(models.asked), time.monotonic()
    status, answer = seat.ask(CHAT, chat())
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "at last")
    assert len(models.asked) - before == 4
    assert seat.left()["model_calls"] == 9, "four attempts are one call"
    assert wait_until(lambda: len(granted(seat)) == 1)
    left_ms = seat.left()["wall_ms"]
    took_ms = (time.monotonic() - began_s) * 1000
    assert sum(granted(seat)) >= 200
    assert left_ms >= 600_000 - took_ms + sum(granted(seat)) - 1


@with_budget(wall_ms=60_000)
def test_the_delay_of_parallel_calls_is_credited_once(seat: Asker, script: Script) -> None:
    busy = ScriptedReply(status=429, headers={"retry-after": "0.2"})
    script.says(*[busy] * 16, ScriptedReply(text="at last"))
    began = time.monotonic()

    def ask(number: int) -> int:
        with closing(HttpSeat(seat.episode.directory)) as http:
            return http.send(CHAT, json.dumps(chat(text=str(number))))[0]

    with ThreadPoolExecutor(16) as threads:
        assert set(threads.map(ask, range(16))) == {200}
    took_ms = (time.monotonic() - began) * 1000
    assert wait_until(lambda: sum(granted(seat)) >= 200)
    assert sum(granted(seat)) <= took_ms


@with_budget(model_tokens=100_000)
def test_a_provider_error_is_forwarded_and_not_charged(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(status=400))
    assert seat.ask(CHAT, chat()) == (
        400,
        {"error": {"message": "as scripted", "type": "scripted"}},
    )
    assert seat.left()["model_tokens"] == 100_000


@with_budget(model_tokens=100_000)
def test_a_disconnected_stream_is_charged_as_reserved(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="never ends", stalls_after=2))
    request = json.dumps(chat(stream=True))
    with closing(HttpSeat(seat.episode.directory)) as short:
        answer = short.open(CHAT, request)
        assert answer.readline()
        answer.close()
    assert wait_until(lambda: seat.left()["model_tokens"] == 100_000 - 100 - len(request))


@with_budget(model_tokens=100_000)
@pytest.mark.parametrize("value", [0, -1, 100.0, 1e5, True, "9", [9], 10**30])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n"])
def test_an_invalid_token_limit_is_refused(seat: Asker, name: str, value: Any) -> None:
    status, answer = seat.ask(CHAT, chat(**{name: value}))
    assert (status, answer["error"]["code"]) == (400, "malformed")
    assert answer["error"]["message"].startswith(name)
    assert seat.left()["model_tokens"] == 100_000


@with_budget(model_tokens=100_000)
@pytest.mark.parametrize(
    "bound", [{"max_tokens": 1_000}, {"max_tokens": None}], ids=["own", "default"]
)
def test_each_requested_choice_is_reserved(
    seat: Asker, script: Script, models: ScriptedModels, bound: dict[str, Any]
) -> None:
    script.says(ScriptedReply(text="ok"))
    before = len(models.asked)
    status, answer = seat.ask(CHAT, chat(n=128, **bound))
    assert (status, answer["error"]["code"]) == (402, "out_of_budget")
    assert len(models.asked) == before


@with_budget(model_tokens=100_000)
def test_a_disconnection_during_a_retry_releases_the_reservation(
    seat: Asker, script: Script
) -> None:
    hung_up, attempts = Event(), count(1)

    def answer(_: AskedOfModel) -> ScriptedReply:
        if next(attempts) < 3:
            return ScriptedReply(status=429, headers={"retry-after": "0.2"})
        assert hung_up.wait(PATIENCE_S)
        return ScriptedReply(status=400)

    script.answers(answer)
    request = json.dumps(chat())
    with closing(HttpSeat(seat.episode.directory)) as short:
        short.connection.request("POST", CHAT, request)
        assert wait_until(lambda: seat.left()["model_tokens"] == 100_000 - 100 - len(request))
    hung_up.set()
    assert wait_until(lambda: seat.left()["model_tokens"] == 100_000)
    assert [call["status"] for call in seat.calls()] == [400]


def keeps_busy(asked: AskedOfModel) -> ScriptedReply:
    """Answer every second attempt with a wait, as a provider at its rate limit."""
    number = json.loads(asked.body)["messages"][0]["content"]
    SEEN[number] = SEEN.get(number, 0) + 1
    if SEEN[number] % 2:
        return ScriptedReply(status=429, headers={"retry-after": "0.2"})
    return ScriptedReply(text="ok")


SEEN: dict[str, int] = {}


@pytest.mark.slow
@with_budget(wall_ms=3_000)
def test_a_wait_for_a_provider_is_not_credited_while_the_seat_calls_tools(
    seat: Asker, script: Script
) -> None:
    over = Event()
    calls = 0

    def answer(asked: AskedOfModel) -> ScriptedReply:
        reply = keeps_busy(asked)
        if reply.status == 200:
            # The second call from now on has begun since the request.
            known = calls
            assert wait_until(lambda: calls >= known + 2)
        return reply

    script.answers(answer)

    def ask_models() -> None:
        with closing(HttpSeat(seat.episode.directory)) as http:
            number = 0
            while http.send(CHAT, json.dumps(chat(text=f"busy{number}")))[0] == 200:
                number += 1
        over.set()

    def call_tools() -> None:
        nonlocal calls
        with closing(HttpSeat(seat.episode.directory)) as http:
            while not over.is_set():
                status, _ = http.rpc(
                    "CallTool", {"toolName": "get_account", "argumentsJson": '{"id": "ax1"}'}
                )
                calls += status == 200

    with ThreadPoolExecutor(2) as threads:
        asking, calling = threads.submit(ask_models), threads.submit(call_tools)
        asking.result()
        calling.result()
    assert granted(seat) == [], "the wall time ended although a provider was busy"


@with_budget(wall_ms=60_000)
def test_a_wait_is_not_credited_while_another_request_is_answered(
    seat: Asker, script: Script, models: ScriptedModels
) -> None:
    answered = Event()

    def answer(asked: AskedOfModel) -> ScriptedReply:
        if b"long" in asked.body:
            assert answered.wait(PATIENCE_S)
            return ScriptedReply(text="ok")
        return keeps_busy(asked)

    script.answers(answer)
    before = len(models.asked)
    with ThreadPoolExecutor(1) as threads:
        long = threads.submit(all_at_once, seat, json.dumps(chat(text="long")), 1)
        assert wait_until(lambda: len(models.asked) > before)
        assert seat.ask(CHAT, chat(text="busy beside"))[0] == 200
        answered.set()
        assert long.result() == [200]
    assert wait_until(lambda: seat.left()["wall_ms"] < 60_000)
    assert sum(granted(seat)) == 0
