"""Opens ten thousand streams, over few connections and over many, and leaves them open."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from attempts import attempt, say
from calls import open_channel, say_whether_served, status
from frames import Connection, open_stream

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

STREAMS = 10_000
INTERACT = "/fumehood.v1.ToolService/Interact"


def by_hand() -> str:
    """Ignore the limits that the server announces."""
    connections = [Connection() for _ in range(10)]
    for number in range(STREAMS):
        connections[number % 10].send(open_stream(1 + 2 * (number // 10), INTERACT))
    still_open = [connection.is_open() for connection in connections]
    for connection in connections:
        connection.close()
    say(f"tried streams by hand: {sum(still_open)} of {len(still_open)} connections go on")
    return ""


def answers(stream: Iterable[pb.InteractResponse]) -> str:
    try:
        return f"{len(list(stream))} answers"
    except grpc.RpcError as error:
        return status(error)


def by_library() -> str:
    channels = [open_channel() for _ in range(8)]
    # Each stream costs a thread of this client, and a box has a limit of threads.
    ended = set()
    for _ in range(16):
        held = [
            ToolServiceStub(channel).Interact(iter([pb.InteractRequest()] * 3), timeout=5)
            for channel in channels
        ]
        ended |= {answers(stream) for stream in held}
    for channel in channels:
        channel.close()
    say(f"tried a hundred streams politely: {', '.join(sorted(ended))}")
    return ""


attempt("ten thousand streams by hand", by_hand)
attempt("a hundred streams", by_library)
say_whether_served()
