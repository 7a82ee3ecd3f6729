"""A seat reached over a lane, with a real orchestrator's side that begins one episode after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection
from pathlib import Path
from threading import Thread
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.wire.lane_client import LaneClient
from fumehood.wire.lane_server import AGENT_SOCKET, LaneServer
from fumehood.wire.ports import Played, SeatPort
from fumehood.wire.tool_server import ToolServerLimits
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.specs import episode_spec

PATIENCE_S = 30.0


class OnLane:
    """Every task that is asked for is that of the same seat."""

    lacks = frozenset[str]()

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection

    def task(self) -> pb.GetTaskResponse:
        return self._exchange(pb.InteractRequest(get_task=pb.GetTaskRequest())).task

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        return self._exchange(pb.InteractRequest(call=request)).call

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        return self._exchange(pb.InteractRequest(submit=request)).submit

    def _exchange(self, request: pb.InteractRequest) -> pb.InteractResponse:
        self._connection.send_bytes(request.SerializeToString())
        return pb.InteractResponse.FromString(self._connection.recv_bytes())


class _SameSeat:
    def __init__(self, seat: SeatPort) -> None:
        self.seat = seat

    def end(self, *, agent_gone: bool, timed_out: bool) -> Played:
        return Played((), None, agent_gone)


@contextmanager
def on_a_lane(port: SeatPort, directory: str) -> Iterator[OnLane]:
    """Serve the port on a lane in ``directory`` and reach it there."""
    message_bytes = ToolServerLimits().message_bytes
    lane = LaneServer(Path(directory) / "lane", lambda spec: _SameSeat(port), message_bytes)
    orchestrator = LaneClient(lane.sockets)
    thread = Thread(target=_play_until_gone, args=(orchestrator,))
    thread.start()
    try:
        with Client(f"{lane.sockets.agent_directory}/{AGENT_SOCKET}", "AF_UNIX") as connection:
            yield OnLane(connection)
    finally:
        thread.join(PATIENCE_S)
        orchestrator.close()
    assert not thread.is_alive()


def _play_until_gone(orchestrator: LaneClient) -> None:
    gone = False
    while not gone:
        orchestrator.begin(episode_spec())
        played = orchestrator.wait(PATIENCE_S)
        if played is None:
            raise InfraError("the lane does not say how its episode ended")
        gone = played.agent_gone
