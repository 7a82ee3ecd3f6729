"""The service as a process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from fumehood.harness_modes.registry import load_libraries
from fumehood.service.confinement import confine
from fumehood.service.host import Host
from fumehood.service.inline import load_builtin_agents
from fumehood.service.message_limits import MessageLimits
from fumehood.service.monotonic_clock import MonotonicClock
from fumehood.wire.control_server import ControlServer

if TYPE_CHECKING:
    from fumehood.gateway.settings import GatewaySettings
    from fumehood.service.http_doors import HttpDoors

CONTROL_SOCKET = "control.sock"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What the second socket of every seat offers."""

    helper: Path | None = None
    """A program that boxes find beside their sockets, as ``bin/fumehood``."""
    models: GatewaySettings | None = None
    """Who answers for models; None for nobody."""


def serve(
    directory: Path,
    *,
    until_stdin_closes: bool,
    http: HttpSettings | None = None,
    worlds: Sequence[str] = (),
    limits: MessageLimits | None = None,
    inline: bool = False,
) -> None:
    """Host episodes until told to stop by SIGTERM or SIGINT.

    Args:
        directory: made if need be and closed to all other users; holds ``control.sock`` and the sockets of
            the episodes. Short: a socket's path has at most 107 bytes.
        until_stdin_closes: also stop when standard input ends, which is how an orchestrator that dies, by
            whatever signal, takes its services with it.
        http: what the second socket of every seat offers; None for no such sockets.
        worlds: names of those whose libraries are loaded at once.
        limits: of what agents may send; None for the usual ones.
        inline: play built-in agents in this process, and open no episode for a box.
    """
    bounds = limits or MessageLimits()
    doors = _http_doors(http, bounds) if http else None
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    # Whoever is told where a socket lies may stand elsewhere.
    directory = directory.resolve()
    load_libraries(worlds)
    if inline:
        load_builtin_agents()
    confine(directory)
    if doors is not None:
        doors.start(directory)
    host = Host(directory, MonotonicClock(), bounds.seat, bounds.server, doors, inline=inline)
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
    if doors is not None:
        doors.stop()


def _http_doors(http: HttpSettings, limits: MessageLimits) -> HttpDoors:
    # Not at the top: a service without them starts in half the time. Here, because later it may not read it.
    from fumehood.service.http_doors import HttpDoors
    from fumehood.wire.http.listener import HttpLimits

    return HttpDoors(http.helper, http.models, HttpLimits(**limits.http))


def _wait_for_end_of_stdin(stop: Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    stop.set()
