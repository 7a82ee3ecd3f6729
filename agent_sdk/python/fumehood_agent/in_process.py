"""A session with a seat endpoint of the same process, for built-in agents.

The messages are those of the gRPC session, so an agent sees the same values. No socket is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fumehood_agent import wire
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.errors import Ended
from fumehood_agent.seat import ModelProblem, Reply, Task

Exchange = Callable[[pb.InteractRequest], pb.InteractResponse]
"""Answers one request; the in-memory counterpart of the gRPC stream."""


class InProcessSession:
    """Implements :class:`~fumehood_agent.seat.Seat`. For one thread."""

    def __init__(self, exchange: Exchange) -> None:
        """Fetch the task; ``exchange`` answers the requests of this session."""
        self._exchange = exchange
        self.ended = False
        """True once no further call will be carried out."""
        response = exchange(pb.InteractRequest(get_task=pb.GetTaskRequest()))
        self.task: Task = wire.task_from_pb(response.task)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Reply:
        """Call the tool ``name``, as :meth:`fumehood_agent.session.Session.call` does."""
        text = wire.arguments_to_json({} if arguments is None else arguments)
        request = pb.InteractRequest(call=wire.call_to_pb(name, text))
        try:
            reply = wire.reply_from_pb(self._exchange(request).call)
        except Ended:
            self.ended = True
            raise
        self.ended = self.ended or reply.ended
        return reply

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
        following = wire.next_from_pb(response)
        if following is None:
            self.ended = True
        else:
            self.task = following
        return response.accepted
