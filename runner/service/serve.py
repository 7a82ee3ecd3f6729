"""The service as a process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Event, Thread

from runner.service.arguments import SeatLimits
from runner.service.host import Host
from runner.service.monotonic_clock import MonotonicClock
from runner.wire.control_server import ControlServer
from runner.wire.tool_server import ToolServerLimits

CONTROL_SOCKET = "control.sock"


def serve(directory: Path, *, until_stdin_closes: bool) -> None:
    """Host episodes until told to stop by SIGTERM or SIGINT.

    Args:
        directory: made if need be and closed to all other users; holds ``control.sock`` and the sockets of
            the episodes. Short: a socket's path has at most 107 bytes.
        until_stdin_closes: also stop when standard input ends, which is how an orchestrator that dies, by
            whatever signal, takes its services with it.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    # Whoever is told where a socket lies may stand elsewhere.
    directory = directory.resolve()
    host = Host(directory, MonotonicClock(), SeatLimits(), ToolServerLimits())
    server = ControlServer(host, str(directory / CONTROL_SOCKET))
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        Thread(target=_wait_for_end_of_stdin, args=(stop,), daemon=True).start()
    stop.wait()
    # First, so that whoever listens to an episode hears it break off rather than end.
    server.stop()
    host.close()


def _wait_for_end_of_stdin(stop: Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    stop.set()
