"""Submits an answer that is slow to judge: a patient regular expression takes hours on it."""

from __future__ import annotations

import grpc
from attempts import say
from calls import open_channel, submit

BYTES = 1 << 20

with open_channel() as channel:
    for answer in ("\n" * (BYTES - 40) + "root cause", "\n" * 100_000):
        try:
            say(f"tried an answer of {len(answer)} line breaks: {submit(channel, answer)}")
            break
        except grpc.RpcError as error:
            say(f"tried an answer of {len(answer)} line breaks: {error.code()}")
