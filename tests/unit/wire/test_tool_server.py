"""The limits of a seat's gRPC server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Any

import grpc
import pytest

from fumehood.core.episode import Reply
from fumehood.core.outcome import (
    Finished,
    GaveUp,
    ModelProblem,
    Refusal,
    RefusalKind,
    Stopped,
)
from fumehood.wire.ports import TaskView
from fumehood.wire.tool_server import ToolServer, ToolServerLimits
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.errors import ServiceFailed
from fumehood_agent.session import Session
from tests.parts.folders import short_folder
from tests.parts.listening import wait_until
from tests.parts.raw_seat import RawSeat, refused_with, socket_dir


class Closed:
    """A seat whose work has ended; it records the submissions."""

    def __init__(self) -> None:
        self.ends: list[Finished | GaveUp | Stopped] = []
        self.problems: list[ModelProblem] = []

    def view_task(self) -> TaskView:
        return TaskView("", (), {})

    def call(self, tool_name: str, arguments_json: str, call_id: str) -> Reply | Refusal:
        return Refusal(RefusalKind.ENDED)

    def count_refused(self, size_bytes: int) -> None:
        pass

    def report_permission(self, title: str, answer: str) -> bool:
        return False

    def report(self, problem: ModelProblem) -> bool:
        self.problems.append(problem)
        return True

    def submit(
        self, end: Finished | GaveUp | Stopped, confidence: float | None = None
    ) -> bool | Refusal:
        self.ends.append(end)
        return True


@contextmanager
def served(seat: Closed | None = None, **limits: int) -> Iterator[str]:
    """Serve a seat; yields the folder of its socket."""
    with short_folder() as directory:
        server = ToolServer(seat or Closed(), f"{directory}/grpc.sock", ToolServerLimits(**limits))
        yield directory
        server.stop()


def test_the_size_of_a_message_is_limited() -> None:
    with served(message_bytes=1000) as directory, socket_dir(directory) as connection:
        fitting = pb.CallToolRequest(arguments_json="x" * 997)
        assert fitting.ByteSize() == 1000
        assert connection.send("", "x" * 997).ended
        code, text = refused_with(lambda: connection.send("", "x" * 998))
        assert (code, "(1001 vs. 1000)" in text) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)


def test_metadata_is_limited() -> None:
    def ask(connection: RawSeat, size: int) -> pb.GetTaskResponse:
        return connection.stub.GetTask(pb.GetTaskRequest(), metadata=(("k", "x" * size),))

    with served(header_bytes=2000) as directory, socket_dir(directory) as connection:
        ask(connection, 1000)
        code, _ = refused_with(lambda: ask(connection, 3000))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_concurrent_calls_are_limited_and_finished_calls_free_their_places() -> None:
    # One each: of one queue, either stream might take what was meant for both.
    open_ended: list[SimpleQueue[pb.InteractRequest | None]] = [SimpleQueue(), SimpleQueue()]
    with served(concurrent_calls=2) as directory, ExitStack() as stack:
        streams = [
            stack.enter_context(socket_dir(directory)).interact(iter(requests.get, None))
            for requests in open_ended
        ]
        for requests in open_ended:
            requests.put(pb.InteractRequest(call=pb.CallToolRequest()))
        for stream in streams:
            next(stream)
        other = stack.enter_context(socket_dir(directory))
        assert refused_with(other.task)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        for requests in open_ended:
            requests.put(None)
        assert [list(stream) for stream in streams] == [[], []]
        assert wait_until(lambda: _is_answered(other))


def test_the_sdk_distinguishes_too_many_calls_from_a_too_large_message() -> None:
    open_ended: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
    with served(concurrent_calls=1) as directory, socket_dir(directory) as holder:
        stream = holder.interact(iter(open_ended.get, None))
        open_ended.put(pb.InteractRequest(call=pb.CallToolRequest()))
        next(stream)
        with pytest.raises(ServiceFailed, match="RESOURCE_EXHAUSTED"):
            Session(f"{directory}/grpc.sock")
        open_ended.put(None)


def _is_answered(connection: RawSeat) -> bool:
    try:
        connection.task()
    except grpc.RpcError:
        return False
    return True


def test_a_silent_connection_is_closed() -> None:
    with served(handshake_ms=300) as directory, socket.socket(socket.AF_UNIX) as silent:
        silent.settimeout(10)
        silent.connect(f"{directory}/grpc.sock")
        heard = b"".join(iter(lambda: silent.recv(4096), b""))
        assert heard.endswith(b"handshake timeout")


def test_connections_are_limited() -> None:
    with served(connections=2) as directory, ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket_dir(directory)).task()
        third: Any = stack.enter_context(socket_dir(directory))
        assert refused_with(third.task)[0] is grpc.StatusCode.UNAVAILABLE


def test_answers_and_reasons_are_distinguished_and_an_empty_submission_is_an_empty_answer() -> None:
    seat = Closed()
    with served(seat) as directory, socket_dir(directory) as connection:
        for request in (
            pb.SubmitRequest(answer="a"),
            pb.SubmitRequest(give_up_reason=""),
            pb.SubmitRequest(),
        ):
            assert connection.stub.Submit(request).accepted
    assert seat.ends == [Finished("a"), GaveUp(""), Finished("")]


def test_a_stream_answers_each_request_in_its_own_kind_and_order() -> None:
    requests = [
        pb.InteractRequest(call=pb.CallToolRequest()),
        pb.InteractRequest(submit=pb.SubmitRequest()),
        pb.InteractRequest(),
    ]
    with served() as directory, socket_dir(directory) as connection:
        answers = list(connection.interact(iter(requests)))
    assert [answer.WhichOneof("response") for answer in answers] == ["call", "submit", "call"]


def test_the_server_removes_its_socket() -> None:
    with short_folder() as directory:
        server = ToolServer(Closed(), f"{directory}/grpc.sock", ToolServerLimits())
        server.stop()
        with socket_dir(directory) as connection:
            assert refused_with(connection.task)[0] is grpc.StatusCode.UNAVAILABLE


def test_known_problems_with_a_model_are_recorded_and_unknown_ones_ignored() -> None:
    seat = Closed()
    with served(seat) as directory, socket_dir(directory) as connection:
        for problem in (pb.MODEL_PROBLEM_TURN_LIMIT, pb.MODEL_PROBLEM_UNSPECIFIED, 99):
            request = pb.ReportRequest(problem=problem)  # type: ignore[arg-type]
            recorded = connection.stub.Report(request).recorded
            assert recorded == (problem == pb.MODEL_PROBLEM_TURN_LIMIT)
        for stopped in (pb.MODEL_PROBLEM_TURN_LIMIT, 99):
            connection.stub.Submit(pb.SubmitRequest(stopped=stopped))  # type: ignore[arg-type]
    assert seat.problems == [ModelProblem.TURN_LIMIT]
    assert seat.ends == [Stopped(ModelProblem.TURN_LIMIT), Stopped(ModelProblem.REQUEST_REFUSED)]
