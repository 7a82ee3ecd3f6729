"""Sends malformed messages to every method, and calls the orchestrator's methods of the service."""

from __future__ import annotations

import os
import random

from attempts import attempt, say
from calls import TOOLS, call, open_channel, send_raw

from fumehood_agent._proto.v1 import tool_pb2 as pb

STRANGERS = f"""
    /fumehood.v1.ControlService/OpenEpisode /fumehood.v1.ControlService/CloseEpisode
    /fumehood.v1.ControlService/BeginEpisode /fumehood.v1.ControlService/Health
    /grpc.reflection.v1.ServerReflection/ServerReflectionInfo
    /grpc.channelz.v1.Channelz/GetServers /grpc.health.v1.Health/Check
    {TOOLS} / // /..%2f {TOOLS}x
""".split()


def stranger(method: str) -> str:
    with open_channel() as channel:
        status = send_raw(channel, method, b"")
        return "" if status in ("UNIMPLEMENTED", "INTERNAL", "UNKNOWN") else status


def nonsense() -> str:
    """Send random bytes; the service must reject them and continue to serve."""
    chance = random.Random(7)
    with open_channel() as channel:
        for method in ("GetTask", "CallTool", "Submit"):
            statuses = [
                send_raw(channel, TOOLS + method, chance.randbytes(chance.randrange(1, 400)))
                for _ in range(60)
            ]
            say(f"tried sixty pieces of nonsense at {method}: {', '.join(sorted(set(statuses)))}")
        last = call(channel, "list_dir", '{"path": "/"}')
        return "" if last in ("value", "ended") else f"the service fell silent: {last}"


def both_ends() -> str:
    """Submit an answer and a reason for giving up in one message; only one may count, once."""
    both = pb.SubmitRequest(answer="a"), pb.SubmitRequest(give_up_reason="b")
    octets = b"".join(end.SerializeToString() for end in both)
    with open_channel() as channel:
        for _ in range(3):
            send_raw(channel, TOOLS + "Submit", octets)
    return ""


for method in STRANGERS:
    attempt(f"the method {method}", stranger, method)
attempt("nonsense", nonsense)
attempt("two endings at once", both_ends)
os._exit(0)
