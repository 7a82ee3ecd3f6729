"""Many tasks, one after another, over one connection that stays open: for agents that are trusted.

To ask for a task is to be done with the one before. The messages are those of the open stream; the framing
is the standard library's, so that a call costs a few system calls and no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from multiprocessing.connection import Client, Connection
from typing import Any

from fumehood_agent import wire
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.errors import ConnectionLost, Ended
from fumehood_agent.seat import Reply, Seat, Task


def play_lane(path: str, play: Callable[[Seat], object]) -> None:
    """Work on every task of a lane, until the other side hangs up.

    Args:
        path: of the socket.
        play: works at a seat; a task is over when it returns.

    Raises:
        ConnectionLost: the other side hung up in the middle of a task.
        Exception: whatever ``play`` raises.
    """
    with Client(path, "AF_UNIX") as connection:
        while True:
            try:
                seat = LaneSeat(connection, path)
            except ConnectionLost:
                return
            play(seat)


class LaneSeat:
    """The seat of the lane's next task; a :class:`~fumehood_agent.seat.Seat`. Not for several threads."""

    def __init__(self, connection: Connection[Any, Any], path: str) -> None:
        """Wait for the task.

        Raises:
            ConnectionLost: there will be no other.
        """
        self._connection = connection
        self._path = path
        self._answered = 0
        self.ended = False
        """True once no further call will be carried out."""
        response = self._exchange(pb.InteractRequest(get_task=pb.GetTaskRequest()))
        self.task: Task = wire.task_from_pb(response.task)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Reply:
        """Call the tool ``name``; as :meth:`fumehood_agent.session.Session.call`."""
        request = wire.call_to_pb(
            name, wire.arguments_to_json({} if arguments is None else arguments)
        )
        try:
            reply = wire.reply_from_pb(self._exchange(pb.InteractRequest(call=request)).call)
        except Ended:
            self.ended = True
            raise
        self._answered += 1
        self.ended = self.ended or reply.ended
        return reply

    def submit(self, answer: str = "") -> bool:
        """Answer the user; as :meth:`fumehood_agent.session.Session.submit`."""
        return self._submit(wire.answer_to_pb(answer))

    def give_up(self, reason: str) -> bool:
        """End the work because it cannot or must not be done; return whether it counted."""
        return self._submit(wire.give_up_to_pb(reason))

    def _submit(self, request: pb.SubmitRequest) -> bool:
        response = self._exchange(pb.InteractRequest(submit=request)).submit
        following = wire.next_from_pb(response)
        if following is None:
            self.ended = True
        else:
            self.task = following
        return response.accepted

    def _exchange(self, request: pb.InteractRequest) -> pb.InteractResponse:
        try:
            self._connection.send_bytes(request.SerializeToString())
            return pb.InteractResponse.FromString(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise ConnectionLost(self._path, self._answered) from None
