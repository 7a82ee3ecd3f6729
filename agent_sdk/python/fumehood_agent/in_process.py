"""A session with a seat endpoint of the same process, for built-in agents.

The messages are those of the gRPC session, so an agent sees the same values. No socket is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fumehood_agent import wire
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.seat import ModelProblem, Reply
from fumehood_agent.work_state import WorkState

Exchange = Callable[[pb.InteractRequest], pb.InteractResponse]
"""Answers one request; the in-memory counterpart of the gRPC stream."""


class InProcessSession(WorkState):
    """Implements :class:`~fumehood_agent.seat.Seat`. For one thread."""

    def __init__(self, exchange: Exchange) -> None:
        """Fetch the task; ``exchange`` answers the requests of this session."""
        self._exchange = exchange
        response = exchange(pb.InteractRequest(get_task=pb.GetTaskRequest()))
        self.task = wire.task_from_pb(response.task)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Reply:
        """Call the tool ``name``, as :meth:`fumehood_agent.session.Session.call` does."""
        text = wire.arguments_to_json({} if arguments is None else arguments)
        request = pb.InteractRequest(call=wire.call_to_pb(name, text))
        return self._reply(self._exchange(request).call)

    def submit(self, answer: str = "", confidence: float | None = None) -> bool:
        """Answer the user, as :meth:`fumehood_agent.session.Session.submit` does."""
        return self._submit(wire.answer_to_pb(answer, confidence))

    def give_up(self, reason: str, confidence: float | None = None) -> bool:
        """Give up, because the task cannot or must not be done; return whether this counts."""
        return self._submit(wire.give_up_to_pb(reason, confidence))

    def stop(self, problem: ModelProblem) -> bool:
        """End the work because of a problem with the model; return whether this counts."""
        return self._submit(pb.SubmitRequest(stopped=wire.problem_to_pb(problem)))

    def report(self, problem: ModelProblem) -> None:
        """Record a problem with the model in the trace; the work continues."""
        request = pb.ReportRequest(problem=wire.problem_to_pb(problem))
        self._exchange(pb.InteractRequest(report=request))

    def _submit(self, request: pb.SubmitRequest) -> bool:
        response = self._exchange(pb.InteractRequest(submit=request)).submit
        return self._accepted(response)
