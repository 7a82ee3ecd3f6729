"""Searches all readable files and all replies for secrets."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
from attempts import GIVEN, SOCKET, attempt

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

CANARY = re.compile(rb"canary-[a-z]+-[0-9a-f]{32}")
FILE_BYTES_MAX = 2_000_000
ALL_BYTES_MAX = 300_000_000
SEARCH_S = 10
"""Limit of the search where the whole host is visible."""


def files() -> Iterator[str]:
    yield GIVEN.get("gold", "/gold")
    tops = [
        os.path.dirname(GIVEN.get("gold", "/gold")),
        "/fumehood",
        "/tmp",
        "/run",
        "/var",
        "/etc",
        "/home",
        "/root",
        "/mnt",
        "/opt",
        "/srv",
        "/dev/shm",
        "/agent",
    ]
    for top in tops:
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)
    for pid in (name for name in os.listdir("/proc") if name.isdecimal()):
        yield from (
            f"/proc/{pid}/{name}"
            for name in ("environ", "cmdline", "mountinfo", "cgroup", "status")
        )


def search() -> str:
    found: set[bytes] = set()
    left = ALL_BYTES_MAX
    deadline = time.monotonic() + SEARCH_S
    for path in files():
        if time.monotonic() > deadline:
            break
        try:
            if os.path.isfile(path) and left > 0:
                with open(path, "rb") as file:
                    content = file.read(FILE_BYTES_MAX)
                left -= len(content)
                found.update(CANARY.findall(content))
        except OSError:
            continue
    return b",".join(found).decode()


def ask() -> str:
    """Return every reply that the service gives."""
    received = b""
    with grpc.insecure_channel(f"unix:{SOCKET}") as channel:
        stub = ToolServiceStub(channel)
        received += stub.GetTask(pb.GetTaskRequest(), timeout=5).SerializeToString()
        for name in ("list_dir", "read_file", "write_file", "gold", "fault_plan", "__dict__", ""):
            for arguments in (
                '{"path":"/"}',
                '{"path":"/a.txt","content":"x"}',
                "{}",
                '{"path":"../gold"}',
            ):
                answer = stub.CallTool(
                    pb.CallToolRequest(tool_name=name, arguments_json=arguments), timeout=5
                )
                received += answer.SerializeToString()
    return b",".join(CANARY.findall(received)).decode()


attempt("all files", search)
attempt("the environment", lambda: b",".join(CANARY.findall(repr(os.environ).encode())).decode())
attempt("the service", ask)
attempt(
    "the file with the answers",
    lambda: Path(GIVEN.get("gold", "/gold")).read_text(encoding="utf-8"),
)
