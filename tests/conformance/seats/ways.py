"""Interfaces to a seat: in process, unary calls, one stream, HTTP.

All take and return the messages of the wire protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import Protocol

from fumehood.core.outcome import Finished, GaveUp, ModelProblem, Stopped
from fumehood.wire.convert import reply_to_pb, submission_to_pb, task_to_pb
from fumehood.wire.ports import SeatPort
from fumehood.wire.seat_requests import answer_interaction
from fumehood.wire.tool_server import ToolServer, ToolServerLimits
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.conformance.seats.http_ways import by_http, by_mcp, by_paths, problem_name
from tests.parts.raw_seat import RawSeat, socket_dir


class Way(Protocol):
    """A seat behind one interface."""

    lacks: frozenset[str]
    """Features that the interface lacks: ``any text`` as arguments, ``recorded arguments``, or
    ``any number``, such as NaN."""

    def task(self) -> pb.GetTaskResponse:
        """Ask for the task."""
        ...

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        """Make one call."""
        ...

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        """End the work."""
        ...

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        """State a problem with the model."""
        ...


class Direct:
    """The port itself, in this process."""

    lacks = frozenset[str]()

    def __init__(self, port: SeatPort) -> None:
        self._port = port

    def task(self) -> pb.GetTaskResponse:
        return task_to_pb(self._port.view_task())

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        return reply_to_pb(
            self._port.call(request.tool_name, request.arguments_json, request.call_id)
        )

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        end: Finished | GaveUp | Stopped = Finished(request.answer)
        if request.WhichOneof("end") == "give_up_reason":
            end = GaveUp(request.give_up_reason)
        elif request.WhichOneof("end") == "stopped":
            end = Stopped(ModelProblem(problem_name(request.stopped)))
        confidence = request.confidence if request.HasField("confidence") else None
        return submission_to_pb(self._port.submit(end, confidence))

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        problem = ModelProblem(problem_name(request.problem))
        return pb.ReportResponse(recorded=self._port.report(problem))


class Unary:
    """Over a socket, with a separate RPC for each message."""

    lacks = frozenset[str]()

    def __init__(self, connection: RawSeat) -> None:
        self._stub = connection.stub

    def task(self) -> pb.GetTaskResponse:
        return self._stub.GetTask(pb.GetTaskRequest())

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        return self._stub.CallTool(request)

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        return self._stub.Submit(request)

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        return self._stub.Report(request)


class Streamed:
    """Over a socket, all messages over one open stream."""

    lacks = frozenset[str]()

    def __init__(self, connection: RawSeat) -> None:
        self._requests: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
        self._answers = connection.interact(iter(self._requests.get, None))
        self._stub = connection.stub

    def task(self) -> pb.GetTaskResponse:
        return self._stub.GetTask(pb.GetTaskRequest())

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        self._requests.put(pb.InteractRequest(call=request))
        answer = next(self._answers)
        assert answer.WhichOneof("response") == "call"
        return answer.call

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        self._requests.put(pb.InteractRequest(submit=request))
        answer = next(self._answers)
        assert answer.WhichOneof("response") == "submit"
        return answer.submit

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        self._requests.put(pb.InteractRequest(report=request))
        return next(self._answers).report

    def hang_up(self) -> None:
        """Say that nothing more will be sent."""
        self._requests.put(None)


@contextmanager
def directly(port: SeatPort, directory: str) -> Iterator[Way]:
    """Reach the port itself."""
    yield Direct(port)


class InProcess:
    """The messages of the open stream, answered in this process."""

    lacks = frozenset[str]()

    def __init__(self, port: SeatPort) -> None:
        self._port = port

    def task(self) -> pb.GetTaskResponse:
        return self._answer(pb.InteractRequest(get_task=pb.GetTaskRequest())).task

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        return self._answer(pb.InteractRequest(call=request)).call

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        return self._answer(pb.InteractRequest(submit=request)).submit

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        return self._answer(pb.InteractRequest(report=request)).report

    def _answer(self, request: pb.InteractRequest) -> pb.InteractResponse:
        return answer_interaction(self._port, request)


@contextmanager
def in_process(port: SeatPort, directory: str) -> Iterator[Way]:
    """Reach the port as an agent does that plays inline."""
    yield InProcess(port)


@contextmanager
def by_unary_calls(port: SeatPort, directory: str) -> Iterator[Way]:
    """Serve the port in ``directory`` and reach it by single calls."""
    with _served(port, directory) as connection:
        yield Unary(connection)


@contextmanager
def by_stream(port: SeatPort, directory: str) -> Iterator[Way]:
    """Serve the port in ``directory`` and reach it over one open stream."""
    with _served(port, directory) as connection:
        way = Streamed(connection)
        yield way
        way.hang_up()


@contextmanager
def _served(port: SeatPort, directory: str) -> Iterator[RawSeat]:
    server = ToolServer(port, f"{directory}/grpc.sock", ToolServerLimits())
    try:
        with socket_dir(directory) as connection:
            yield connection
    finally:
        server.stop()


WAYS: dict[str, Callable[[SeatPort, str], AbstractContextManager[Way]]] = {
    "directly": directly,
    "unary": by_unary_calls,
    "stream": by_stream,
    "in_process": in_process,
    "http": by_http,
    "paths": by_paths,
    "mcp": by_mcp,
}
