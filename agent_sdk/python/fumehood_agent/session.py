"""A session with a seat over its socket.

By default, all calls use one open stream, one call at a time. Without the stream, each call is a
separate RPC. That is slower, but several threads can call in parallel. A call whose response was
lost is then sent again with the same ``call_id``, so it is executed once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import count
from queue import SimpleQueue
from threading import Lock
from typing import Any, Self

import grpc

from fumehood_agent import wire
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub
from fumehood_agent.address import (
    CHANNEL_OPTIONS,
    POLL_S,
    channel_target,
    require_short,
    socket_path,
)
from fumehood_agent.errors import (
    ConnectionLost,
    DeadlinePassed,
    NotReachable,
    ServiceFailed,
)
from fumehood_agent.seat import ModelProblem, Reply, Task
from fumehood_agent.work_state import WorkState

CONNECTED_S = 1.0
"""How long the state of a connection may take to arrive."""


class Stream:
    """An open ``Interact`` RPC. Not safe for parallel use."""

    def __init__(self, stub: ToolServiceStub) -> None:
        # A thread of gRPC waits at this queue. Both are implemented in C, so this is fast.
        self._requests: SimpleQueue[pb.InteractRequest | None] = SimpleQueue()
        self._call = stub.Interact(iter(self._requests.get, None))
        self._responses = iter(self._call)

    def exchange(self, request: pb.InteractRequest) -> pb.InteractResponse | None:
        """Return the response to ``request``; None if the service has closed the stream.

        Raises:
            grpc.RpcError: the stream broke.
        """
        self._requests.put(request)
        return next(self._responses, None)

    def close(self) -> None:
        """Close the stream; a waiting request fails."""
        self._requests.put(None)
        self._call.cancel()  # type: ignore[no-untyped-call]  # its stub lacks a type


class Session(WorkState):
    """A connection to one seat: the task, calls, and the end of the work.

    A context manager. Safe to use from several threads; with ``stream=True`` their calls take
    turns.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        stream: bool = True,
        service_timeout_ms: int = 30_000,
    ) -> None:
        """Connect and fetch the task.

        Args:
            path: path of the socket; by default the environment variable ``FUMEHOOD_SOCKET``, else
                ``/fumehood/grpc.sock``.
            stream: send calls over one open stream rather than as separate RPCs.
            service_timeout_ms: time to wait for the service at the start and, without the stream,
                for the response to a call after the connection was lost; milliseconds. A service
                that is connected may send the task later, when the work begins.

        Raises:
            NotReachable: no service answered in time.
        """
        self.path = socket_path(path)
        self._service_timeout_ms = service_timeout_ms
        self._session_id = os.urandom(8).hex()
        self._call_numbers = count(1)
        self._lock = Lock()
        self._uses_stream = stream
        self._stream: Stream | None = None
        self._channel = grpc.insecure_channel(channel_target(self.path), CHANNEL_OPTIONS)
        self._stub = ToolServiceStub(self._channel)
        try:
            self.task = self._fetch_task()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; does nothing the second time."""
        self._drop_stream()
        self._channel.close()

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        deadline_ms: int | None = None,
    ) -> Reply:
        """Call the tool ``name``.

        Args:
            name: name of a tool of the task; any other name gets a failure.
            arguments: JSON values by name; None means none.
            call_id: idempotency key, at most 64 bytes: a call that is sent again with the same key
                is executed once, and gets the same reply.
            deadline_ms: time to wait for the reply, milliseconds; None means no limit.

        Returns:
            The reply, with a value or a failure of the tool.

        Raises:
            Refused: the service refused the call; nothing was executed or charged.
            Ended: the work had ended before.
            DeadlinePassed: no reply arrived in time.
            ServiceUnavailable: the connection broke, or the response is malformed.
        """
        text = wire.arguments_to_json({} if arguments is None else arguments)
        return self.call_json(name, text, call_id=call_id, deadline_ms=deadline_ms)

    def call_json(
        self, name: str, arguments_json: str, *, call_id: str = "", deadline_ms: int | None = None
    ) -> Reply:
        """Call the tool ``name`` with arguments as JSON text, as models write them.

        The text is sent unchanged; the service refuses anything but one object. Otherwise as
        :meth:`call`.
        """
        request = wire.call_to_pb(name, arguments_json, call_id)
        if deadline_ms is not None:
            response = self._send_within(request, deadline_ms)
        elif self._uses_stream:
            response = self._exchange(pb.InteractRequest(call=request)).call
        else:
            # The session ID is random, because an agent may open several sessions.
            request.call_id = request.call_id or f"{self._session_id}.{next(self._call_numbers)}"
            response = self._send_call(request)
        return self._reply(response)

    def submit(self, answer: str = "", confidence: float | None = None) -> bool:
        """Submit an answer, any text.

        If the user sends another message, ``task`` is the next task; otherwise the work has ended.

        Args:
            answer: any text.
            confidence: probability that the task is done correctly, 0 to 1; None states none.

        Returns:
            True if the answer counts; False if the work had ended before.

        Raises:
            Refused: the service refused the text or the confidence; the work continues.
            ServiceUnavailable: the connection broke.
        """
        return self._submit(wire.answer_to_pb(answer, confidence))

    def give_up(self, reason: str, confidence: float | None = None) -> bool:
        """Give up, because the task cannot or must not be done.

        Args:
            reason: any text.
            confidence: probability that giving up is right, 0 to 1; None states none.

        Returns:
            True if this counts; False if the work had ended before.

        Raises:
            Refused: the service refused the text or the confidence; the work continues.
            ServiceUnavailable: the connection broke.
        """
        return self._submit(wire.give_up_to_pb(reason, confidence))

    def stop(self, problem: ModelProblem) -> bool:
        """End the work because of a problem with the model; see :meth:`give_up`."""
        return self._submit(pb.SubmitRequest(stopped=wire.problem_to_pb(problem)))

    def report(self, problem: ModelProblem) -> None:
        """Record a problem with the model in the trace; the work continues.

        Raises:
            ServiceUnavailable: the connection broke.
        """
        request = pb.ReportRequest(problem=wire.problem_to_pb(problem))
        if self._uses_stream:
            self._exchange(pb.InteractRequest(report=request))
            return
        try:
            self._stub.Report(request)
        except grpc.RpcError as error:
            raise self._error(error, sent_bytes=request.ByteSize()) from error

    def _fetch_task(self) -> Task:
        started = time.monotonic()

        def waited_ms() -> int:
            return int((time.monotonic() - started) * 1000)

        require_short(self.path)
        while not os.path.exists(self.path):
            if waited_ms() >= self._service_timeout_ms:
                raise NotReachable(self.path, waited_ms(), "no such socket")
            time.sleep(POLL_S)
        left_s = max(1, self._service_timeout_ms - waited_ms()) / 1000
        try:
            return wire.task_from_pb(self._request_task(left_s))
        except grpc.RpcError as error:
            problem = self._error(error, sent_bytes=0)
            if isinstance(problem, ConnectionLost):
                raise NotReachable(self.path, waited_ms(), "no service answers") from error
            raise problem from error

    def _request_task(self, timeout_s: float) -> pb.GetTaskResponse:
        """Return the task; a service that is not connected within ``timeout_s`` is an error."""
        try:
            return self._stub.GetTask(pb.GetTaskRequest(), timeout=timeout_s, wait_for_ready=True)
        except grpc.RpcError as error:
            if not wire.is_late(error):
                raise
            try:
                grpc.channel_ready_future(self._channel).result(CONNECTED_S)
            except grpc.FutureTimeoutError:
                raise error from None
        return self._stub.GetTask(pb.GetTaskRequest())

    def _send_within(self, request: pb.CallToolRequest, deadline_ms: int) -> pb.CallToolResponse:
        # A separate RPC: on the open stream, the next call would receive a late response.
        try:
            return self._stub.CallTool(request, timeout=deadline_ms / 1000)
        except grpc.RpcError as error:
            if wire.is_late(error):
                raise DeadlinePassed(self.path, deadline_ms) from error
            raise self._error(error, sent_bytes=request.ByteSize()) from error

    def _send_call(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        try:
            return self._stub.CallTool(request)
        except grpc.RpcError as error:
            problem = self._error(error, sent_bytes=request.ByteSize())
            if not isinstance(problem, ConnectionLost):
                raise problem from error
        return self._send_again(request)

    def _send_again(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        """Repeat a call whose response was lost, until one arrives or the time is up."""
        deadline = time.monotonic() + self._service_timeout_ms / 1000
        while True:
            left_s = max(0.001, deadline - time.monotonic())
            try:
                return self._stub.CallTool(request, timeout=left_s, wait_for_ready=True)
            except grpc.RpcError as error:
                problem = self._error(error, sent_bytes=request.ByteSize())
                if not isinstance(problem, ConnectionLost) or time.monotonic() >= deadline:
                    raise problem from error
                time.sleep(POLL_S)

    def _submit(self, request: pb.SubmitRequest) -> bool:
        if self._stream is not None:
            response = self._exchange(pb.InteractRequest(submit=request)).submit
        else:
            try:
                response = self._stub.Submit(request)
            except grpc.RpcError as error:
                raise self._error(error, sent_bytes=request.ByteSize()) from error
        return self._accepted(response)

    def _exchange(self, request: pb.InteractRequest) -> pb.InteractResponse:
        with self._lock:
            try:
                self._stream = self._stream or Stream(self._stub)
                response = self._stream.exchange(request)
            except grpc.RpcError as error:
                self._drop_stream()
                raise self._error(error, sent_bytes=request.ByteSize()) from error
            except BaseException:
                # An interrupt came between request and response. The stream must not be used
                # again, because its next response belongs to this request.
                self._drop_stream()
                raise
            if response is None:
                self._drop_stream()
                raise ConnectionLost(self.path, self._replies_received)
        if response.WhichOneof("response") != request.WhichOneof("request"):
            raise ServiceFailed(f"{self.path}: the response does not match the request")
        return response

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
