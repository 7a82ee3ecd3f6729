"""What all sessions know about the work at a seat."""

from __future__ import annotations

import grpc

from fumehood_agent import wire
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.errors import Ended, FumehoodError
from fumehood_agent.seat import Reply, Task


class WorkState:
    """The task of a session, and whether its work has ended."""

    task: Task
    """The current task."""
    ended = False
    """True if the work has ended, so that no further call is executed."""
    path = ""
    """Path of the socket; empty without one."""
    _replies_received = 0

    def _reply(self, response: pb.CallToolResponse) -> Reply:
        try:
            reply = wire.reply_from_pb(response)
        except Ended:
            self.ended = True
            raise
        self._replies_received += 1
        self.ended = self.ended or reply.ended
        return reply

    def _accepted(self, response: pb.SubmitResponse) -> bool:
        """Return whether an answer counts; after it, the work has ended or the next task begins."""
        following = wire.next_from_pb(response)
        if following is None:
            self.ended = True
        else:
            self.task = following
        return response.accepted

    def _error(self, error: grpc.RpcError, *, sent_bytes: int) -> FumehoodError:
        return wire.error_from_rpc(
            error, path=self.path, answered=self._replies_received, sent_bytes=sent_bytes
        )
