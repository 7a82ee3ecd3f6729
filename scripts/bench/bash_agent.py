"""Runs inside the box of an agent: times calls of ``bash`` when the benchmark asks for them."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

TURNS_SOCKET = "/fumehood/turns.sock"


class Probe:
    """An agent that measures instead of working."""

    def run(self, session: Any) -> None:
        """Answer each line with a number of calls by their durations, milliseconds."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(TURNS_SOCKET)
            with connection.makefile("rw") as turns:
                for line in turns:
                    times = []
                    for _ in range(int(line)):
                        started = time.perf_counter()
                        reply = session.call("bash", {"command": "true"})
                        times.append((time.perf_counter() - started) * 1000)
                        assert reply.result.output["exit_status"] == 0, reply
                    turns.write(json.dumps(times) + "\n")
                    turns.flush()
        session.submit()
