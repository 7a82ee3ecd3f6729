"""Runs the service as a process."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from fumehood.core.errors import InputError
from fumehood.harness_modes.registry import load_libraries
from fumehood.service.confinement import confine
from fumehood.service.host import Host
from fumehood.service.inline import load_builtin_agents
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.wire.control_server import ControlServer
from fumehood.wire.tool_server import ToolServerLimits

if TYPE_CHECKING:
    from fumehood.gateway.settings import GatewaySettings
    from fumehood.service.http_sockets import HttpSockets

CONTROL_SOCKET = "control.sock"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What the HTTP socket of every seat offers."""

    helper: Path | None = None
    """Program that boxes see beside their sockets, as ``bin/fumehood``."""
    models: GatewaySettings | None = None
    """Settings of the gateway; None for no models."""


_HTTP_ALONE = ("head_bytes", "body_bytes", "request_bytes", "pipelined_requests")
"""Limits that only the HTTP socket has."""


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """The message limits of every seat."""

    seat: SeatLimits = field(default_factory=SeatLimits)
    """Limits of one message."""
    server: ToolServerLimits = field(default_factory=ToolServerLimits)
    """Limits of the gRPC connections."""
    http: Mapping[str, int] = field(default_factory=dict)
    """Limits of the HTTP socket that differ from the defaults, by name. Its class takes long to
    import."""


def message_limits(text: str) -> MessageLimits:
    """Parse limits from a JSON object of names and numbers; the others keep their defaults.

    Raises:
        InputError: the text is malformed, or names an unknown limit.
    """
    try:
        given = json.loads(text)
        http = {name: given[name] for name in (*_HTTP_ALONE, "connections") if name in given}
        seat = {
            limit.name: given.pop(limit.name) for limit in fields(SeatLimits) if limit.name in given
        }
        server = {name: value for name, value in given.items() if name not in _HTTP_ALONE}
        return MessageLimits(SeatLimits(**seat), ToolServerLimits(**server), http)
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"--limits must be a JSON object of known limits: {text[:200]}") from None


def serve(
    directory: Path,
    *,
    until_stdin_closes: bool,
    http: HttpSettings | None = None,
    worlds: Sequence[str] = (),
    limits: MessageLimits | None = None,
    inline: bool = False,
) -> None:
    """Host episodes until SIGTERM or SIGINT.

    Args:
        directory: for ``control.sock`` and the sockets of the episodes; created if missing, and
            closed to other users. Must be short: the path of a socket has at most 107 bytes.
        until_stdin_closes: also stop when standard input ends, so that the service ends with its
            orchestrator.
        http: what the HTTP socket of every seat offers; None for no HTTP sockets.
        worlds: names of the worlds whose libraries are loaded at the start.
        limits: limits of the agents' messages; None for the defaults.
        inline: play built-in agents in this process, and open no episode for a box.
    """
    bounds = limits or MessageLimits()
    http_sockets = _http_sockets(http, bounds) if http else None
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    # A client may have another working directory.
    directory = directory.resolve()
    load_libraries(worlds)
    if inline:
        load_builtin_agents()
    confine(directory)
    if http_sockets is not None:
        http_sockets.start()
    host = Host(
        directory, MonotonicClock(), bounds.seat, bounds.server, http_sockets, inline=inline
    )
    server = ControlServer(host, str(directory / CONTROL_SOCKET))
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        Thread(target=_wait_for_end_of_stdin, args=(stop,), daemon=True).start()
    stop.wait()
    # First, so that the clients of open episodes see a broken stream and not a regular end.
    server.stop()
    host.close()
    if http_sockets is not None:
        http_sockets.stop()


def _http_sockets(http: HttpSettings, limits: MessageLimits) -> HttpSockets:
    # A service without HTTP starts in half the time. Later this process may no longer read the
    # modules.
    from fumehood.service.http_sockets import HttpSockets
    from fumehood.wire.http.listener import HttpLimits

    return HttpSockets(http.helper, http.models, HttpLimits(**limits.http))


def _wait_for_end_of_stdin(stop: Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    stop.set()
