"""Searches all readable files and all replies for secrets."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from attempts import GIVEN, attempt, canaries_in
from calls import open_channel

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

GOLD = GIVEN.get("gold", "/gold")
TOPS = "/fumehood /tmp /run /var /etc /home /root /mnt /opt /srv /dev/shm /agent".split()
FILE_BYTES_MAX = 2_000_000
ALL_BYTES_MAX = 300_000_000
SEARCH_S = 10
"""Limit of the search where the whole host is visible."""
ARGUMENTS = ('{"path":"/"}', '{"path":"/a.txt","content":"x"}', "{}", '{"path":"../gold"}')


def files() -> Iterator[str]:
    yield GOLD
    for top in (os.path.dirname(GOLD), *TOPS):
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)
    for pid in (name for name in os.listdir("/proc") if name.isdecimal()):
        for name in ("environ", "cmdline", "mountinfo", "cgroup", "status"):
            yield f"/proc/{pid}/{name}"


def search() -> str:
    found: set[str] = set()
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
                found.update(canaries_in(content))
        except OSError:
            continue
    return ",".join(found)


def ask() -> str:
    """Return every reply that the service gives."""
    received = b""
    with open_channel() as channel:
        stub = ToolServiceStub(channel)
        received += stub.GetTask(pb.GetTaskRequest(), timeout=5).SerializeToString()
        for name in ("list_dir", "read_file", "write_file", "gold", "fault_plan", "__dict__", ""):
            for arguments in ARGUMENTS:
                request = pb.CallToolRequest(tool_name=name, arguments_json=arguments)
                received += stub.CallTool(request, timeout=5).SerializeToString()
    return ",".join(canaries_in(received))


attempt("all files", search)
attempt("the environment", lambda: ",".join(canaries_in(repr(os.environ).encode())))
attempt("the service", ask)
attempt("the file with the answers", Path(GOLD).read_text, "utf-8")
