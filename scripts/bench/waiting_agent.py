"""Runs inside a box: an agent that waits before each call, as one with a slow model does."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


class WaitingAgent:
    """Times its calls and prints them."""

    def __init__(self, wait_s: float, calls: int) -> None:
        """Set the time before each call, seconds, and the number of calls."""
        self._wait_s, self._calls = wait_s, calls

    def run(self, session: Any) -> None:
        """Wait and call; print the beginning and the end of each call, seconds on one clock.

        Also print the processor time of this process and of the first one of the box.
        """
        began = time.monotonic()
        calls = []
        for _ in range(self._calls):
            time.sleep(self._wait_s)
            before = time.monotonic()
            session.call("get_account", {"id": "a1"})
            calls.append((before, time.monotonic()))
        session.submit()
        times = {"began": began, "calls": calls, "ended": time.monotonic()}
        json.dump({**times, "processor_s": time.process_time() + _first_process_s()}, sys.stdout)


def _first_process_s() -> float:
    """Return the processor time of process 1, unless that is this one. Source: proc(5)."""
    try:
        with open("/proc/1/schedstat", encoding="ascii") as file:
            return 0.0 if os.getpid() == 1 else int(file.read().split()[0]) / 1e9
    except OSError:
        return 0.0
