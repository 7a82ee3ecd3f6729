"""Looks for the sockets of other episodes and calls a tool there."""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Iterator

import grpc
from attempts import GIVEN, SOCKET, attempt

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

NEIGHBOUR = GIVEN.get("neighbour", "/tmp/none/grpc.sock")
FOLDER = os.path.dirname(NEIGHBOUR)


def ways() -> Iterator[str]:
    yield NEIGHBOUR
    for root in (
        "/proc/1/root",
        "/proc/self/root",
        "/proc/self/cwd",
        "/fumehood/../../../..",
        "/proc/2/root",
    ):
        yield root + NEIGHBOUR
    yield from glob.glob("/fumehood/../*/grpc.sock")
    yield from glob.glob("/fumehood/../../*/*/grpc.sock")
    yield from glob.glob("/fumehood/**/*", recursive=True)
    for folders in ("*", "*/*", "*/*/*/*"):
        yield from glob.glob(f"/tmp/{folders}.sock")
        yield from glob.glob(f"/run/{folders}.sock")


def call(path: str) -> str:
    if os.path.samefile(path, SOCKET):
        return ""
    with grpc.insecure_channel(f"unix:{path}") as channel:
        stub = ToolServiceStub(channel)
        answer = stub.CallTool(
            pb.CallToolRequest(tool_name="list_dir", arguments_json='{"path":"/"}'), timeout=2
        )
        return answer.WhichOneof("result") or ""


def by_link() -> str:
    os.symlink(NEIGHBOUR, "/tmp/neighbour")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/tmp/neighbour")
    return "connected"


def take_over() -> str:
    """Replace the socket of this seat, so that another process connects to it."""
    os.rename(SOCKET, SOCKET + ".old")
    return "moved"


def listen_beside() -> str:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.join(os.path.dirname(SOCKET), "mine.sock"))
    return "bound"


for path in dict.fromkeys(ways()):
    if path != SOCKET:
        attempt(f"call at {path}", call, path)
attempt("connect by a link", by_link)
attempt("list the neighbour's folder", os.listdir, FOLDER)
if GIVEN.get("unboxed") is None:
    attempt("move our own socket away", take_over)
    attempt("listen beside our own socket", listen_beside)
