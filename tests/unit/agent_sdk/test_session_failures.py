"""What a session says when things go wrong, and who is at fault."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from fumehood_agent import (
    ConnectionLost,
    DeadlinePassed,
    Ended,
    NotReachable,
    RefusalKind,
    Refused,
    ServiceFailed,
    Session,
    Value,
)
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.seat import Reply
from tests.unit.agent_sdk.relay import Relay
from tests.unit.agent_sdk.scripted_service import (
    LossyService,
    ScriptedService,
    echo,
    refusal,
    value,
)


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    return circle


def _nested(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def test_a_refusal_names_its_kind_and_numbers(service: ScriptedService, stream: bool) -> None:
    service.answer = lambda _: refusal(pb.REFUSAL_KIND_TOO_DEEP, limit=32, actual=40)
    with Session(service.path, stream=stream) as session, pytest.raises(Refused) as caught:
        session.call("echo", {"text": "a"})
    assert (caught.value.kind, caught.value.limit, caught.value.actual) == (
        RefusalKind.TOO_DEEP,
        32,
        40,
    )
    assert str(caught.value) == "refused, too_deep: 40 is more than the limit 32"


def test_work_continues_after_a_refusal(service: ScriptedService, stream: bool) -> None:
    answers = [refusal(pb.REFUSAL_KIND_MALFORMED), value({"ok": True})]
    service.answer = lambda _: answers.pop(0)
    with Session(service.path, stream=stream) as session:
        with pytest.raises(Refused):
            session.call("echo")
        assert session.call("echo").result == Value({"ok": True})


def test_a_call_after_the_end_reports_the_end(service: ScriptedService, stream: bool) -> None:
    service.answer = lambda _: refusal(pb.REFUSAL_KIND_ENDED)
    with Session(service.path, stream=stream) as session:
        with pytest.raises(Ended):
            session.call("echo")
        assert session.ended


_UNWRITABLE: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "set": {1, 2},
    "half_a_surrogate_pair": "\ud800",
    "circle": _circle(),
    "abyss": _nested(5000),
}


@pytest.mark.parametrize("unwritable", _UNWRITABLE.values(), ids=_UNWRITABLE.keys())
def test_arguments_that_are_not_json_are_not_sent(
    service: ScriptedService, stream: bool, unwritable: Any
) -> None:
    with Session(service.path, stream=stream) as session:
        with pytest.raises(Refused) as caught:
            session.call("echo", {"x": unwritable})
        assert caught.value.kind is RefusalKind.MALFORMED
        assert session.call("echo", {"text": "a"}).result == Value({"text": "a"})
    assert len(service.received) == 1


def test_an_answer_that_is_not_utf_8_is_not_sent(service: ScriptedService) -> None:
    with Session(service.path) as session:
        with pytest.raises(Refused):
            session.submit("\udfff")
        assert not session.ended
    assert service.submitted == []


def test_a_message_above_the_receivers_limit_is_refused_with_its_size(
    tmp_path: Path, stream: bool
) -> None:
    with (
        ScriptedService(tmp_path / "s", message_bytes_max=100_000) as service,
        Session(service.path, stream=stream) as session,
    ):
        with pytest.raises(Refused) as caught:
            session.call("echo", {"text": "a" * 200_000})
        assert caught.value.kind is RefusalKind.TOO_LARGE
        assert caught.value.limit == 100_000
        assert 200_000 < caught.value.actual < 201_000
        assert session.call("echo", {"text": "a"}).result == Value({"text": "a"})


def test_a_missing_socket_is_not_reachable(tmp_path: Path) -> None:
    with pytest.raises(NotReachable) as caught:
        Session(tmp_path / "s", service_timeout_ms=50)
    assert caught.value.path == str(tmp_path / "s")
    assert 50 <= caught.value.waited_ms < 2000
    assert "no such socket" in str(caught.value)


def test_a_socket_without_a_service_is_not_reachable(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "s"))
        with pytest.raises(NotReachable, match="no service answers"):
            Session(tmp_path / "s", service_timeout_ms=200)


def test_a_connected_service_may_answer_after_the_timeout(service: ScriptedService) -> None:
    service.has_begun.clear()
    with ThreadPoolExecutor(1) as threads:
        session = threads.submit(Session, service.path, service_timeout_ms=50)
        service.wait_for_patient_request()
        with session.result(20) as begun:
            assert begun.task.instruction == "Say «ψ» twice."


def test_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    with pytest.raises(NotReachable, match="107 bytes") as caught:
        Session(tmp_path / ("s" * 120))
    assert caught.value.waited_ms == 0


def test_a_service_that_ends_between_calls_is_a_lost_connection(
    service: ScriptedService, stream: bool
) -> None:
    with Session(service.path, stream=stream, service_timeout_ms=100) as session:
        session.call("echo")
        session.call("echo")
        service.vanish()
        with pytest.raises(ConnectionLost) as caught:
            session.call("echo")
    assert caught.value.answered == 2
    assert caught.value.path == str(service.path)


def test_a_service_that_ends_during_a_call_is_a_lost_connection(
    service: ScriptedService, stream: bool
) -> None:
    never, arrived = Event(), Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        arrived.set()
        never.wait(10)
        return value({})

    service.answer = answer

    def vanish() -> None:
        arrived.wait(5)
        service._server.stop(grace=None)

    thread = Thread(target=vanish)
    thread.start()
    try:
        with (
            Session(service.path, stream=stream, service_timeout_ms=100) as session,
            pytest.raises(ConnectionLost),
        ):
            session.call("echo")
    finally:
        never.set()
        thread.join()


def test_a_submission_over_a_lost_connection_fails(service: ScriptedService, stream: bool) -> None:
    with Session(service.path, stream=stream, service_timeout_ms=100) as session:
        session.call("echo")
        service.vanish()
        with pytest.raises(ConnectionLost):
            session.submit("lost")
        assert not session.ended


def test_a_response_after_the_deadline_can_be_requested_again(
    service: ScriptedService, stream: bool
) -> None:
    go_on = Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        assert go_on.wait(5)
        return echo(request)

    service.answer = answer
    with Session(service.path, stream=stream) as session:
        with pytest.raises(DeadlinePassed) as caught:
            session.call("echo", {"n": 1}, call_id="a", deadline_ms=50)
        assert caught.value.deadline_ms == 50
        go_on.set()
        while not service.carried_out:
            time.sleep(0.005)
        assert session.call("echo", {"n": 1}, call_id="a").result == Value({"n": 1})
    assert service.carried_out == 1


def test_a_call_whose_response_was_lost_runs_once(tmp_path: Path) -> None:
    arrived, go_on = Event(), Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        arrived.set()
        assert go_on.wait(5)
        return echo(request)

    with (
        ScriptedService(tmp_path / "s", answer) as service,
        Relay(tmp_path / "r", tmp_path / "s") as relay,
        Session(tmp_path / "r", stream=False) as session,
    ):

        def lose_the_answer() -> None:
            assert arrived.wait(5)
            relay.cut()
            go_on.set()

        thread = Thread(target=lose_the_answer)
        thread.start()
        assert session.call("echo", {"n": 1}).result == Value({"n": 1})
        thread.join()
        first, second = service.received
    assert first.call_id == second.call_id
    assert 0 < len(first.call_id) <= 64


def test_a_call_is_sent_again_until_its_response_arrives(tmp_path: Path) -> None:
    with (
        LossyService(tmp_path / "s", losses=3) as service,
        Relay(tmp_path / "r", tmp_path / "s") as relay,
        Session(tmp_path / "r", stream=False) as session,
    ):
        service.lose = relay.cut
        assert session.call("echo", {"n": 1}).result == Value({"n": 1})
        assert len(service.received) == 4
        assert service.carried_out == 1


def test_a_stream_that_was_cut_is_opened_anew_for_the_next_call(tmp_path: Path) -> None:
    with (
        ScriptedService(tmp_path / "s") as service,
        Relay(tmp_path / "r", tmp_path / "s") as relay,
        Session(tmp_path / "r") as session,
    ):
        session.call("echo", {"n": 1})
        relay.cut()
        with pytest.raises(ConnectionLost):
            session.call("echo", {"n": 2})
        assert _as_soon_as_connected(lambda: session.call("echo", {"n": 3})).result == Value(
            {"n": 3}
        )
        assert [json.loads(each.arguments_json)["n"] for each in service.received] == [1, 3]


def _as_soon_as_connected(call: Callable[[], Reply]) -> Reply:
    """Make a call; for a moment after a cut the relay may not listen yet."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return call()
        except ConnectionLost:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def test_no_two_calls_have_one_id(service: ScriptedService) -> None:
    for _ in range(2):
        with Session(service.path, stream=False) as session:
            session.call("echo")
            session.call("echo")
    names = [each.call_id for each in service.received]
    assert len(set(names)) == 4


@pytest.mark.parametrize(
    "answer",
    [
        pb.CallToolResponse(),
        pb.CallToolResponse(value_json="[1]"),
        pb.CallToolResponse(value_json="{"),
        pb.CallToolResponse(value_json="[" * 100_000),
        pb.CallToolResponse(refusal=pb.Refusal(kind=99)),  # type: ignore[arg-type]
    ],
    ids=["nothing", "list", "torn", "abyss", "unknown_refusal"],
)
def test_a_malformed_response_is_not_a_fault_of_the_agent(
    service: ScriptedService, stream: bool, answer: pb.CallToolResponse
) -> None:
    service.answer = lambda _: answer
    with Session(service.path, stream=stream) as session, pytest.raises(ServiceFailed):
        session.call("echo")


def test_a_broken_service_is_not_a_fault_of_the_agent(
    service: ScriptedService, stream: bool
) -> None:
    def broken(request: pb.CallToolRequest) -> pb.CallToolResponse:
        raise ZeroDivisionError

    service.answer = broken
    with (
        Session(service.path, stream=stream) as session,
        pytest.raises(ServiceFailed, match="UNKNOWN"),
    ):
        session.call("echo")
