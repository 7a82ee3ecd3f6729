"""Agents that violate the protocol, each in one way."""

from __future__ import annotations

import os
import sys
import time
from typing import Any


class ExitsEarly:
    """Exits with status 0 without submitting."""

    def run(self, session: Any) -> None:
        os._exit(0)


class ExitsWithStatus:
    """Exits with status 41."""

    def run(self, session: Any) -> None:
        os._exit(41)


class Hangs:
    """Runs beyond its wall time."""

    def run(self, session: Any) -> None:
        while True:
            time.sleep(1)


class PrintsOneGigabyte:
    """Prints a gigabyte, then submits."""

    def run(self, session: Any) -> None:
        chunk = b"x" * (1 << 20)
        for _ in range(1000):
            sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
        session.submit()


class SendsHundredMegabytes:
    """Sends a message above the size limit."""

    def run(self, session: Any) -> None:
        session.call("get_account", {"id": "x" * 100_000_000})


class SendsMalformedBytes:
    """Speaks gRPC, but no message of the contract."""

    def run(self, session: Any) -> None:
        import grpc

        channel = grpc.insecure_channel(f"unix:{session.path}")
        for method in ("CallTool", "Submit", "GetTask"):
            channel.unary_unary(f"/fumehood.v1.ToolService/{method}", None, None)(
                b"\xff\xff\xff\xff"
            )


class OpensThousandStreams:
    """Opens streams and never reads them."""

    def run(self, session: Any) -> None:
        import grpc

        channels = [grpc.insecure_channel(f"unix:{session.path}", [("n", n)]) for n in range(10)]
        method = "/fumehood.v1.ToolService/Interact"
        streams: list[Any] = [
            channel.stream_stream(method, None, None)(iter(lambda: time.sleep(60), None))
            for channel in channels
            for _ in range(100)
        ]
        time.sleep(1)
        refused = sum(stream.done() for stream in streams)
        print("streams that were refused:", refused)
        session.submit()
