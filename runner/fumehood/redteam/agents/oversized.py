"""Sends large headers and messages, wrong lengths, and small messages that unpack to large ones."""

from __future__ import annotations

import zlib

import grpc
from attempts import attempt, say
from calls import TOOLS, call, open_channel, say_whether_served, send_raw, status, varint
from frames import DATA, Connection, frame, header, message, open_stream

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

MIB = 1 << 20


def large(tool: str, arguments: str) -> str:
    with open_channel() as channel:
        outcome = call(channel, tool, arguments)
    return outcome if outcome == "value" else ""


def metadata_of(count: int, size: int) -> str:
    pairs = tuple((f"x-{number}", "y" * size) for number in range(count))
    with open_channel() as channel:
        request = pb.CallToolRequest(tool_name="list_dir").SerializeToString()
        outcome = send_raw(channel, f"{TOOLS}CallTool", request, metadata=pairs)
    return outcome if outcome == "OK" else ""


def packed_bomb() -> str:
    """Send compressed zeros: one kilobyte unpacks to one megabyte."""
    packer = zlib.compressobj(9, wbits=31)
    octets = packer.compress(b"\x12" + varint(16 * MIB))
    octets += b"".join(packer.compress(bytes(MIB)) for _ in range(16)) + packer.flush()
    connection = Connection()
    connection.send(open_stream(1, extra=header("grpc-encoding", "gzip")))
    body = message(octets, packed=True)
    for start in range(0, len(body), 16000):
        connection.send(frame(DATA, 0, 1, body[start : start + 16000]))
    received = connection.receive(1.0)
    connection.close()
    say(f"tried to unpack 16 MiB out of {len(octets)} bytes: {len(received)} bytes of answer")
    return ""


def packed_by_library() -> str:
    with open_channel() as channel:
        arguments = '{"path": "' + "x" * (8 * MIB) + '"}'
        request = pb.CallToolRequest(tool_name="read_file", arguments_json=arguments)
        stub, gzip = ToolServiceStub(channel), grpc.Compression.Gzip
        try:
            stub.CallTool(request, timeout=10, compression=gzip)
        except grpc.RpcError as error:
            return "" if status(error) == "RESOURCE_EXHAUSTED" else status(error)
    return "taken"


def lying_length() -> str:
    connection = Connection()
    connection.send(open_stream(1) + frame(DATA, 0, 1, message(b"x", length=0xFFFFFFFF)))
    connection.receive(0.5)
    connection.close()
    return ""


def huge_frame() -> str:
    connection = Connection()
    connection.send(open_stream(1) + b"\xff\xff\xff\0\0\0\0\0\1")
    try:
        for _ in range(16):
            connection.send(bytes(262144))
    except OSError:
        pass
    connection.close()
    return ""


for size in (2 * MIB, 8 * MIB, 16 * MIB):
    arguments = '{"path": "' + "x" * size + '"}'
    attempt(f"arguments of {size >> 20} MiB", large, "read_file", arguments)
attempt("a name of a megabyte", large, "x" * MIB, "{}")
for count, size in ((1, MIB), (1000, 100), (50, 1000)):
    attempt(f"{count} headers of {size} bytes", metadata_of, count, size)
attempt("a message that unpacks", packed_bomb)
attempt("a message that unpacks, politely", packed_by_library)
attempt("a length that lies", lying_length)
attempt("a frame that never ends", huge_frame)
say_whether_served()
