"""The gateway forwards valid requests unchanged and refuses invalid ones."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.trace import ModelExchange
from fumehood.gateway.settings import Provider
from fumehood.orchestrator.service_pool import HttpOffer, ServicePool
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply, ToolUse
from fumehood.wire.control_client import ControlClient
from tests.parts.http import HttpSeat
from tests.parts.listening import listening, wait_until
from tests.parts.models import (
    CHAT,
    KEY,
    MESSAGES,
    RESPONSES,
    Asker,
    Script,
    chat,
    gateway_settings,
    new_service,
    question,
    with_budget,
)
from tests.parts.specs import episode_spec

each_path = pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])


@each_path
def test_a_request_is_written_anew_with_the_same_values(
    seat: Asker, script: Script, models: ScriptedModels, path: str
) -> None:
    script.says(ScriptedReply(text="ok", tools=(ToolUse("get_account", {"id": "ax1"}),)))
    request = question(path, metadata={"é": 1.0, "n": 10**30, "a": None})
    seat.ask(path, json.dumps(request, indent=3))
    asked = models.asked[-1]
    sent = request if path != RESPONSES else {**request, "store": False}
    assert asked.path == path
    assert asked.body == json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()
    carried = asked.headers.get("x-api-key") or asked.headers["authorization"]
    assert carried in (KEY, f"Bearer {KEY}")
    assert "fumehood" not in str(asked.headers)


@each_path
@with_budget(model_tokens=100_000)
def test_a_stream_is_forwarded_chunk_by_chunk(seat: Asker, script: Script, path: str) -> None:
    more: dict[str, Any] = {"stream_options": {"include_usage": True}} if path == CHAT else {}
    request = json.dumps(question(path, stream=True, **more))
    script.says(ScriptedReply(text="one two three four", usage=(40, 9)))
    answer = seat.http.open(path, request)
    assert answer.headers["content-type"] == "text/event-stream"
    body = answer.read()
    assert b"data:" in body
    assert b"four" in body
    assert wait_until(lambda: seat.left()["model_tokens"] == 100_000 - 49)
    script.says(ScriptedReply(text="one two three four", stalls_after=1))
    with closing(HttpSeat(seat.episode.directory)) as short:
        assert short.open(path, request).readline(), "the first part does not wait for the others"


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_response_beyond_the_limit_fails_and_is_charged_as_reserved(*, streams: bool) -> None:
    long = ScriptedReply(text="word " * 1_000)
    with (
        ScriptedModels(
            lambda asked: long if asked.request["max_tokens"] == 99 else ScriptedReply()
        ) as models,
        new_service(models, response_bytes_max=3_000) as seat,
    ):
        request = json.dumps(chat(max_tokens=99, stream=streams))
        if streams:
            with pytest.raises(IncompleteRead):
                seat.http.send(CHAT, request)
            seat.http.close()
        else:
            status, body = seat.http.send(CHAT, request)
            message = json.loads(body)["error"]["message"]
            assert (status, message) == (417, "the response of the provider exceeds 3000 bytes")
        assert seat.ask(CHAT, chat())[0] == 200
        call, _ = seat.calls()
        assert call["spent"]["model_tokens"] == len(request) + 99
        refused = [event for event in seat.episode.events if event["kind"] == "model_refused"]
    assert [event["reason"] for event in refused] == ["response_too_large"]


@pytest.mark.slow
def test_a_seat_stores_at_most_64_mib() -> None:
    def answer(asked: AskedOfModel) -> ScriptedReply:
        return ScriptedReply(text="x" * int(asked.request["messages"][0]["content"]))

    def ask(seat: Asker, text_bytes: int) -> int:
        """Ask for ``text_bytes`` of text, and return the size of request and response."""
        request = json.dumps(chat(text=f"{text_bytes:08}"), separators=(",", ":"))
        status, response = seat.http.send(CHAT, request)
        assert status == 200
        return len(request) + len(response)

    with ScriptedModels(answer) as models, new_service(models) as seat:
        sizes = [ask(seat, 15 << 20) for _ in range(4)]
        rest = (64 << 20) - sum(sizes)
        text_bytes = rest - (sizes[0] - (15 << 20))
        assert ask(seat, text_bytes + 1) == rest + 1
        assert ask(seat, text_bytes) == rest
        ask(seat, 0)
        seat.episode.close()
        messages = seat.episode.messages
    stored = [each for each in messages if isinstance(each, ModelExchange)]
    assert [len(each.request) + len(each.response) for each in stored] == [*sizes, rest]


@pytest.mark.slow
def test_the_list_of_models_has_those_that_the_settings_name(models: ScriptedModels) -> None:
    providers = (
        Provider(name="one", address=models.address, models=("m1", "m-*")),
        Provider(name="two", address=models.address, models=("other",)),
    )
    with new_service(models, providers=providers) as seat:
        status, body = seat.http.send("/v1/models", "", method="GET")
    listed = json.loads(body)["data"]
    assert status == 200
    assert [(model["id"], model["object"]) for model in listed] == [
        ("m1", "model"),
        ("other", "model"),
    ]


@with_budget(model_tokens=100_000)
def test_malformed_parts_of_a_stream_are_forwarded(seat: Asker, script: Script) -> None:
    rubbish = b"data: {usage: [\n\n\xff\xfe\n"
    script.says(ScriptedReply(text="a b", usage=(11, 2), malformed=rubbish))
    request = chat(stream=True, stream_options={"include_usage": True})
    _, body = seat.http.send(CHAT, json.dumps(request))
    assert rubbish in body
    assert wait_until(lambda: seat.left()["model_tokens"] == 100_000 - 13)


@pytest.mark.parametrize(
    ("path", "request_body", "status", "code"),
    [
        (CHAT, "[]", 400, "malformed"),
        (CHAT, "{", 400, "malformed"),
        (CHAT, '{"model": 7}', 400, "malformed"),
        (CHAT, "[" * 100_000, 400, "malformed"),
        ("/v1/embeddings", "{}", 400, "malformed"),
        (CHAT, '{"model": "another"}', 404, "unknown_model"),
    ],
)
def test_an_invalid_request_is_refused_with_a_documented_code(
    seat: Asker, path: str, request_body: str, status: int, code: str
) -> None:
    answered, answer = seat.ask(path, request_body)
    assert (answered, answer["error"]["code"]) == (status, code)


@pytest.mark.slow
def test_memory_of_running_requests_of_a_seat_is_bounded(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="ok", pause_s=2.0))
    large = json.dumps(chat(text="x" * (20 * 1024 * 1024)))

    def ask(_: int) -> int:
        with closing(HttpSeat(seat.episode.directory)) as http:
            try:
                return http.send(CHAT, large)[0]
            except OSError:
                return 413  # Answered, and hung up on, before it was all sent.

    with ThreadPoolExecutor(6) as threads:
        statuses = sorted(threads.map(ask, range(6)))
    assert statuses[0] == 200
    assert statuses.count(200) <= 3
    assert set(statuses) == {200, 413}
    assert seat.ask(CHAT, chat())[0] == 200, "the memory is released"


def test_model_requests_after_the_end_are_refused(seat: Asker, script: Script) -> None:
    script.says(ScriptedReply(text="ok"))
    seat.http.rpc("Submit", {"answer": "done"})
    assert seat.ask(CHAT, chat())[1]["error"]["code"] == "ended"


@pytest.mark.slow
def test_concurrent_streams_are_complete(client: ControlClient, script: Script) -> None:
    words = " ".join(f"w{number}" for number in range(20))
    script.says(ScriptedReply(text=words, pause_s=0.02))

    def ask(directory: str) -> int:
        with closing(HttpSeat(directory)) as http:
            _, body = http.send(CHAT, json.dumps(chat(stream=True)))
            return body.count(b'"content": "w')

    specs = [episode_spec(episode_id=f"many{number}") for number in range(4)]
    with (
        listening(client, specs[0]) as one,
        listening(client, specs[1]) as two,
        listening(client, specs[2]) as three,
        listening(client, specs[3]) as four,
        ThreadPoolExecutor(200) as threads,
    ):
        directories = [one.directory, two.directory, three.directory, four.directory] * 50
        assert list(threads.map(ask, directories)) == [20] * 200
        for episode in (one, two, three, four):
            episode.close()
            calls = [event for event in episode.events if event["kind"] == "model_call"]
            assert [call["status"] for call in calls] == [200] * 50, "and all are in the traces"


def test_only_the_service_holds_the_key(
    seat: Asker,
    script: Script,
    models: ScriptedModels,
    pool: ServicePool,
    capfd: pytest.CaptureFixture[str],
) -> None:
    script.says(ScriptedReply(text="ok"))
    _, body = seat.ask(CHAT, chat())
    seat.ask(CHAT, '{"model": "another"}')
    seat.episode.close()
    assert KEY not in json.dumps(body)
    assert KEY not in str(seat.episode.messages)
    pid = pool.workers()[0].pid
    assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    every = [
        path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if os.access(path, os.R_OK)
    ]
    assert not any(KEY.encode() in line for line in every)
    assert KEY not in "".join(capfd.readouterr())
    assert KEY not in repr(HttpOffer(None, gateway_settings(models)))
