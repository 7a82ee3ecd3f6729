"""A session with a seat for asyncio.

The methods are those of :class:`~fumehood_agent.session.Session`. Each call is a separate RPC, so
several tasks can call in parallel, and a call whose response was lost is sent again with the same
``call_id``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from itertools import count
from time import monotonic
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
from fumehood_agent.errors import ConnectionLost, DeadlinePassed, NotReachable
from fumehood_agent.seat import ModelProblem, Reply, Task
from fumehood_agent.work_state import WorkState


async def play(agent: Any) -> None:
    """Run an agent whose ``run`` is a coroutine function, until its work ends."""
    async with AsyncSession() as session:
        while not session.ended:
            task = session.task
            await agent.run(session)
            if not session.ended and session.task is task:
                await session.submit()


class AsyncSession(WorkState):
    """A connection to one seat: the task, calls, and the end of the work.

    An asynchronous context manager; entering it sets ``task``.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, service_timeout_ms: int = 30_000
    ) -> None:
        """Create the session, as :class:`~fumehood_agent.session.Session`; entering it connects."""
        self.path = socket_path(path)
        self._service_timeout_ms = service_timeout_ms
        self._session_id = os.urandom(8).hex()
        self._call_numbers = count(1)

    async def __aenter__(self) -> Self:
        """Connect and fetch the task.

        Raises:
            NotReachable: no service answered in time.
        """
        # Created here, because a channel belongs to the running loop.
        self._channel = grpc.aio.insecure_channel(channel_target(self.path), CHANNEL_OPTIONS)
        self._stub = ToolServiceStub(self._channel)
        try:
            self.task = await self._fetch_task()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; does nothing the second time."""
        await self._channel.close(None)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        deadline_ms: int | None = None,
    ) -> Reply:
        """Call the tool ``name``, as :meth:`fumehood_agent.session.Session.call`."""
        text = wire.arguments_to_json({} if arguments is None else arguments)
        return await self.call_json(name, text, call_id=call_id, deadline_ms=deadline_ms)

    async def call_json(
        self, name: str, arguments_json: str, *, call_id: str = "", deadline_ms: int | None = None
    ) -> Reply:
        """Call the tool ``name`` with arguments as JSON text, sent unchanged."""
        request = wire.call_to_pb(
            name, arguments_json, call_id or f"{self._session_id}.{next(self._call_numbers)}"
        )
        if deadline_ms is None:
            response = await self._send_call(request)
        else:
            response = await self._send_within(request, deadline_ms)
        return self._reply(response)

    async def submit(self, answer: str = "", confidence: float | None = None) -> bool:
        """Submit an answer, as :meth:`fumehood_agent.session.Session.submit`."""
        return await self._submit(wire.answer_to_pb(answer, confidence))

    async def give_up(self, reason: str, confidence: float | None = None) -> bool:
        """Give up; return whether this counts."""
        return await self._submit(wire.give_up_to_pb(reason, confidence))

    async def stop(self, problem: ModelProblem) -> bool:
        """End the work because of a problem with the model; return whether this counts."""
        return await self._submit(pb.SubmitRequest(stopped=wire.problem_to_pb(problem)))

    async def report(self, problem: ModelProblem) -> None:
        """Record a problem with the model in the trace; the work continues."""
        request = pb.ReportRequest(problem=wire.problem_to_pb(problem))
        try:
            await self._stub.Report(request)
        except grpc.RpcError as error:
            raise self._error(error, sent_bytes=request.ByteSize()) from error

    async def _fetch_task(self) -> Task:
        require_short(self.path)
        started = monotonic()
        while not os.path.exists(self.path):
            if monotonic() - started >= self._service_timeout_ms / 1000:
                raise NotReachable(self.path, self._service_timeout_ms, "no such socket")
            await asyncio.sleep(POLL_S)
        left_s = max(0.001, self._service_timeout_ms / 1000 - (monotonic() - started))
        try:
            return wire.task_from_pb(await self._request_task(left_s))
        except grpc.RpcError as error:
            problem = self._error(error, sent_bytes=0)
            if isinstance(problem, ConnectionLost):
                raise NotReachable(
                    self.path, self._service_timeout_ms, "no service answers"
                ) from error
            raise problem from error

    async def _request_task(self, timeout_s: float) -> pb.GetTaskResponse:
        """Return the task; a service that is not connected within ``timeout_s`` is an error."""
        try:
            return await self._stub.GetTask(
                pb.GetTaskRequest(), timeout=timeout_s, wait_for_ready=True
            )
        except grpc.RpcError as error:
            is_connected = self._channel.get_state() is grpc.ChannelConnectivity.READY
            if not (wire.is_late(error) and is_connected):
                raise
        return await self._stub.GetTask(pb.GetTaskRequest())

    async def _send_within(
        self, request: pb.CallToolRequest, deadline_ms: int
    ) -> pb.CallToolResponse:
        try:
            return await self._stub.CallTool(request, timeout=deadline_ms / 1000)
        except grpc.RpcError as error:
            if wire.is_late(error):
                raise DeadlinePassed(self.path, deadline_ms) from error
            raise self._error(error, sent_bytes=request.ByteSize()) from error

    async def _send_call(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        try:
            return await self._stub.CallTool(request)
        except grpc.RpcError as error:
            problem = self._error(error, sent_bytes=request.ByteSize())
            if not isinstance(problem, ConnectionLost):
                raise problem from error
        return await self._send_again(request)

    async def _send_again(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        """Repeat a call whose response was lost, until one arrives or the time is up."""
        deadline = monotonic() + self._service_timeout_ms / 1000
        while True:
            left_s = max(0.001, deadline - monotonic())
            try:
                return await self._stub.CallTool(request, timeout=left_s, wait_for_ready=True)
            except grpc.RpcError as error:
                problem = self._error(error, sent_bytes=request.ByteSize())
                if not isinstance(problem, ConnectionLost) or monotonic() >= deadline:
                    raise problem from error
                await asyncio.sleep(POLL_S)

    async def _submit(self, request: pb.SubmitRequest) -> bool:
        try:
            response = await self._stub.Submit(request)
        except grpc.RpcError as error:
            raise self._error(error, sent_bytes=request.ByteSize()) from error
        return self._accepted(response)
