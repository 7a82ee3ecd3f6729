"""Submits an answer that is slow to judge: a patient regular expression takes hours on it."""

from __future__ import annotations

import grpc
from attempts import say
from calls import open_channel

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1.tool_pb2_grpc import ToolServiceStub

BYTES = 1 << 20

with open_channel() as channel:
    for answer in ("\n" * (BYTES - 40) + "root cause", "\n" * 100_000):
        try:
            accepted = ToolServiceStub(channel).Submit(pb.SubmitRequest(answer=answer), timeout=20)
            say(f"tried an answer of {len(answer)} line breaks: {accepted.accepted}")
            break
        except grpc.RpcError as error:
            say(f"tried an answer of {len(answer)} line breaks: {error.code()}")
