"""A session over a real socket, by stream and by unary calls."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from time import sleep

import pytest

from fumehood_agent import Failure, Remaining, Session, Value
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.seat import ModelProblem
from tests.unit.agent_sdk.relay import Relay
from tests.unit.agent_sdk.scripted_service import PARAMETERS, ScriptedService, failure, value


def test_shows_the_task(service: ScriptedService) -> None:
    with Session(service.path) as session:
        task = session.task
    assert task.instruction == "Say «ψ» twice."
    assert [(tool.name, tool.description) for tool in task.tools] == [("echo", "Says it again.")]
    assert json.dumps(task.tools[0].parameters) == json.dumps(PARAMETERS)
    assert task.remaining == Remaining(steps=6, retries=0)


def test_finds_the_socket_by_the_environment(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUMEHOOD_SOCKET", str(service.path))
    with Session() as session:
        assert session.path == str(service.path)


def test_a_given_path_takes_precedence_over_the_environment(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUMEHOOD_SOCKET", "/nowhere")
    with Session(service.path) as session:
        assert session.task.tools


@pytest.mark.parametrize("name", ["a b", "100%25", "what?", "#1", "ψ"])
def test_a_socket_may_have_any_name(tmp_path: Path, name: str) -> None:
    quoted = tmp_path / name.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    with ScriptedService(quoted), Session(tmp_path / name) as session:
        assert session.task.tools


def test_waits_for_a_socket_that_does_not_exist_yet(tmp_path: Path) -> None:
    appeared: list[ScriptedService] = []

    def appear() -> None:
        sleep(0.2)
        appeared.append(ScriptedService(tmp_path / "s").__enter__())

    thread = Thread(target=appear)
    thread.start()
    with Session(tmp_path / "s") as session:
        assert session.task.tools
    thread.join()
    appeared[0].vanish()


def test_a_service_that_is_not_ready_for_long_is_tried_at_short_intervals(
    service: ScriptedService, tmp_path: Path
) -> None:
    # With intervals that double, the tenth attempt would come after the timeout.
    with (
        Relay(tmp_path / "r", service.path, refusals=9),
        Session(tmp_path / "r", service_timeout_ms=6_000) as session,
    ):
        assert session.task.tools


def test_each_session_has_its_own_connection(service: ScriptedService, tmp_path: Path) -> None:
    with (
        Relay(tmp_path / "r", service.path) as relay,
        Session(tmp_path / "r"),
        Session(tmp_path / "r"),
    ):
        assert relay.accepted == 2


def test_returns_values(service: ScriptedService, stream: bool) -> None:
    with Session(service.path, stream=stream) as session:
        reply = session.call("echo", {"text": "a", "again": 2})
    assert reply.result == Value({"text": "a", "again": 2})
    assert not reply.ended
    assert reply.recorded_arguments is None


def test_returns_failures_as_replies(service: ScriptedService, stream: bool) -> None:
    service.answer = lambda _: failure(
        "not_found", "no such thing", tool_name="echo", tried=[1, None]
    )
    with Session(service.path, stream=stream) as session:
        reply = session.call("echo", {"text": "a"})
    assert reply.result == Failure(
        "not_found", "no such thing", {"tool_name": "echo", "tried": [1, None]}
    )


def test_problems_with_a_model_are_reported_and_end_the_work(
    service: ScriptedService, stream: bool
) -> None:
    with Session(service.path, stream=stream) as session:
        session.report(ModelProblem.REPLY_UNPARSEABLE)
        assert not session.ended
        assert session.stop(ModelProblem.TURN_LIMIT)
        assert session.ended
    assert service.reported == [pb.MODEL_PROBLEM_REPLY_UNPARSEABLE]
    assert [end.stopped for end in service.submitted] == [pb.MODEL_PROBLEM_TURN_LIMIT]


def test_a_failure_without_details_has_none(service: ScriptedService) -> None:
    service.answer = lambda _: pb.CallToolResponse(failure=pb.Failure(code="odd"))
    with Session(service.path) as session:
        assert session.call("echo").result == Failure("odd", "", {})


def test_distinguishes_an_unlimited_budget_from_an_empty_one(
    service: ScriptedService, stream: bool
) -> None:
    service.answer = lambda _: value({}, remaining={"steps": 0, "wall_ms": 1})
    with Session(service.path, stream=stream) as session:
        assert session.call("echo").remaining == {"steps": 0, "wall_ms": 1}


def test_returns_the_recorded_arguments(service: ScriptedService, stream: bool) -> None:
    service.answer = lambda _: value({}, recorded_arguments_json='{"b":1,"a":2}')
    with Session(service.path, stream=stream) as session:
        recorded = session.call("echo", {"a": 2}).recorded_arguments
    assert recorded is not None
    assert list(recorded.items()) == [("b", 1), ("a", 2)]


def test_reports_the_end_of_its_work(service: ScriptedService, stream: bool) -> None:
    service.answer = lambda _: value({}, ended=True)
    with Session(service.path, stream=stream) as session:
        assert not session.ended
        assert session.call("echo").ended
        assert session.ended


def test_keeps_text_numbers_and_order_as_they_are(service: ScriptedService, stream: bool) -> None:
    arguments = {
        "z": "\u0000 \U0001f9e4 \u2028 \"'\\",
        "ψ": 10**40,
        "a": 1.0,
        "b": [1, True, None, {"": -0.0}],
    }
    with Session(service.path, stream=stream) as session:
        result = session.call("echo", arguments).result
    assert isinstance(result, Value)
    assert json.dumps(result.output) == json.dumps(arguments)
    assert json.loads(service.received[0].arguments_json) == arguments


def test_sends_no_arguments_as_an_empty_object(service: ScriptedService) -> None:
    with Session(service.path) as session:
        session.call("echo")
    assert service.received[0].arguments_json == "{}"


def test_sends_text_unchanged(service: ScriptedService, stream: bool) -> None:
    with Session(service.path, stream=stream) as session:
        session.call_json("echo", '{ "a" : 1.0 }')
    assert service.received[0].arguments_json == '{ "a" : 1.0 }'


def test_a_call_with_an_id_runs_once(service: ScriptedService, stream: bool) -> None:
    with Session(service.path, stream=stream) as session:
        replies = [session.call("echo", {"n": 1}, call_id="a") for _ in range(2)]
    assert replies[0] == replies[1]
    assert service.carried_out == 1


def test_takes_results_of_sixteen_megabytes(service: ScriptedService, stream: bool) -> None:
    text = "ψ" * (8 * 1024 * 1024)
    service.answer = lambda _: pb.CallToolResponse(
        value_json=json.dumps({"t": text}, ensure_ascii=False)
    )
    with Session(service.path, stream=stream) as session:
        assert session.call("echo").result == Value({"t": text})


def test_all_calls_share_one_stream(service: ScriptedService) -> None:
    with Session(service.path) as session:
        for number in range(50):
            assert session.call("echo", {"n": number}).result == Value({"n": number})
        assert session.submit("done")
    assert service.streams_opened == 1
    assert [json.loads(each.arguments_json)["n"] for each in service.received] == list(range(50))


def test_without_a_stream_none_is_opened(service: ScriptedService) -> None:
    with Session(service.path, stream=False) as session:
        session.call("echo")
        session.submit()
    assert service.streams_opened == 0


def test_parallel_calls_receive_their_responses(service: ScriptedService, stream: bool) -> None:
    with Session(service.path, stream=stream) as session, ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda n: session.call("echo", {"n": n}), range(200)))
    assert [reply.result for reply in replies] == [Value({"n": n}) for n in range(200)]
    assert service.carried_out == 200


def test_unary_calls_do_not_wait_for_each_other(service: ScriptedService) -> None:
    arrived, together = [Event(), Event()], Event()

    def answer(request: pb.CallToolRequest) -> pb.CallToolResponse:
        arrived[json.loads(request.arguments_json)["n"]].set()
        assert together.wait(5)
        return value({})

    service.answer = answer
    with Session(service.path, stream=False) as session, ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(session.call, "echo", {"n": n}) for n in range(2)]
        assert all(event.wait(5) for event in arrived)
        together.set()
        assert [call.result().result for call in calls] == [Value({}), Value({})]


def test_only_the_first_submission_counts(service: ScriptedService, stream: bool) -> None:
    with Session(service.path, stream=stream) as session:
        session.call("echo")
        assert session.submit("42 ψ")
        assert session.ended
        assert not session.give_up("too late")
    answered, gave_up = service.submitted
    assert answered.WhichOneof("end") == "answer"
    assert answered.answer == "42 ψ"
    assert gave_up.WhichOneof("end") == "give_up_reason"
    assert gave_up.give_up_reason == "too late"


def test_an_empty_answer_is_an_answer(service: ScriptedService) -> None:
    with Session(service.path) as session:
        session.submit()
    assert service.submitted[0].WhichOneof("end") == "answer"


def test_closing_twice_equals_closing_once(service: ScriptedService, stream: bool) -> None:
    session = Session(service.path, stream=stream)
    session.call("echo")
    session.close()
    session.close()
