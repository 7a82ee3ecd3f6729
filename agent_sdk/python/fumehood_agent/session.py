"""A seat at the other side of a socket.

Calls go over one open stream by default, a request out and its answer in, which is the fastest that gRPC
gives. Without the stream each call is an exchange of its own: slower, but from several threads at once,
and a call whose answer was lost is sent again under the same name, so that it is carried out once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import count
from threading import Lock
from types import TracebackType
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
    Ended,
    FumehoodError,
    NotReachable,
    ServiceFailed,
)
from fumehood_agent.seat import Reply, Task
from fumehood_agent.stream import Stream


class Session:
    """A connection to one seat: the task, calls, and the end of the work.

    A context manager. Safe to use from several threads; with ``stream=True`` their calls take turns.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        stream: bool = True,
        patience_ms: int = 5000,
    ) -> None:
        """Connect and fetch the task.

        Args:
            path: of the socket; by default the environment's ``FUMEHOOD_SOCKET``, else
                ``/fumehood/grpc.sock``.
            stream: send calls over one open stream rather than each on its own.
            patience_ms: how long to wait for somebody to answer: at the start, and for the same call to be
                answered after its connection was lost (only without the stream).

        Raises:
            NotReachable: nobody answered in time.
        """
        self.path = socket_path(path)
        self.ended = False
        """True once no further call will be carried out."""
        self._patience_ms = patience_ms
        self._answered = 0
        self._name = os.urandom(8).hex()
        self._call_numbers = count(1)
        self._lock = Lock()
        self._streams = stream
        self._stream: Stream | None = None
        self._channel = grpc.insecure_channel(channel_target(self.path), CHANNEL_OPTIONS)
        self._stub = ToolServiceStub(self._channel)
        try:
            self.task: Task = self._fetch_task()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up. Closing twice is closing once."""
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
            name: one of the task's tools; any other is answered with a failure.
            arguments: values that JSON can hold, by name; None means none.
            call_id: a name for this very call, at most 64 bytes: a call that is sent again under the same
                name is carried out once and answered the same twice.
            deadline_ms: how long to wait for the answer; None means until it is there.

        Returns:
            What the tool said, be it a value or a failure.

        Raises:
            Refused: the call was not let through; nothing happened and nothing was charged.
            Ended: the work had ended before.
            DeadlinePassed: there was no answer in time.
            ServiceUnavailable: the connection broke, or the answer makes no sense.
        """
        text = wire.arguments_to_json({} if arguments is None else arguments)
        return self.call_json(name, text, call_id=call_id, deadline_ms=deadline_ms)

    def call_json(
        self, name: str, arguments_json: str, *, call_id: str = "", deadline_ms: int | None = None
    ) -> Reply:
        """Call the tool ``name`` with arguments that are JSON text already, as models write them.

        They are sent as they are; the wall refuses what is not one object. Otherwise as :meth:`call`.
        """
        request = wire.call_to_pb(name, arguments_json, call_id)
        if deadline_ms is not None:
            response = self._send_within(request, deadline_ms)
        elif self._streams:
            response = self._exchange(pb.InteractRequest(call=request)).call
        else:
            # Random, because an agent may open several sessions; taking the next number is atomic.
            request.call_id = request.call_id or f"{self._name}.{next(self._call_numbers)}"
            response = self._send_call(request)
        return self._reply(response)

    def submit(self, answer: str = "") -> bool:
        """Answer the user, any text.

        Where the user says more, there is another ``task`` then; else the work has ended.

        Returns:
            True when it counted; False when the work had ended before.

        Raises:
            Refused: the text was not let through; the work goes on.
            ServiceUnavailable: the connection broke.
        """
        return self._submit(wire.answer_to_pb(answer))

    def give_up(self, reason: str) -> bool:
        """End the work because it cannot or must not be done.

        Returns:
            True when it counted; False when the work had ended before.

        Raises:
            Refused: the text was not let through; the work goes on.
            ServiceUnavailable: the connection broke.
        """
        return self._submit(wire.give_up_to_pb(reason))

    def _fetch_task(self) -> Task:
        started = time.monotonic()

        def waited_ms() -> int:
            return int((time.monotonic() - started) * 1000)

        require_short(self.path)
        while not os.path.exists(self.path):
            if waited_ms() >= self._patience_ms:
                raise NotReachable(self.path, waited_ms(), "no such socket")
            time.sleep(POLL_S)
        left_s = max(1, self._patience_ms - waited_ms()) / 1000
        try:
            message = self._stub.GetTask(pb.GetTaskRequest(), timeout=left_s, wait_for_ready=True)
        except grpc.RpcError as error:
            problem = self._error(error, sent_bytes=0)
            if isinstance(problem, ConnectionLost):
                raise NotReachable(self.path, waited_ms(), "nobody answers") from error
            raise problem from error
        return wire.task_from_pb(message)

    def _send_within(self, request: pb.CallToolRequest, deadline_ms: int) -> pb.CallToolResponse:
        # An exchange of its own: on the open stream a late answer would be taken for the next one's.
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
        """Send a call whose answer was lost until it is answered; the break may outlast the first attempt."""
        deadline = time.monotonic() + self._patience_ms / 1000
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
        following = wire.next_from_pb(response)
        if following is None:
            self.ended = True
        else:
            self.task = following
        return response.accepted

    def _exchange(self, request: pb.InteractRequest) -> pb.InteractResponse:
        with self._lock:
            try:
                self._stream = self._stream or Stream(self._stub)
                response = self._stream.exchange(request)
            except grpc.RpcError as error:
                self._drop_stream()
                raise self._error(error, sent_bytes=request.ByteSize()) from error
            except BaseException:
                # Interrupted between request and answer: the next answer would belong to this request.
                self._drop_stream()
                raise
            if response is None:
                self._drop_stream()
                raise ConnectionLost(self.path, self._answered)
        if response.WhichOneof("response") != request.WhichOneof("request"):
            raise ServiceFailed(f"{self.path}: an answer to something else")
        return response

    def _reply(self, response: pb.CallToolResponse) -> Reply:
        try:
            reply = wire.reply_from_pb(response)
        except Ended:
            self.ended = True
            raise
        self._answered += 1
        self.ended = self.ended or reply.ended
        return reply

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _error(self, error: grpc.RpcError, *, sent_bytes: int) -> FumehoodError:
        return wire.error_from_rpc(
            error, path=self.path, answered=self._answered, sent_bytes=sent_bytes
        )
