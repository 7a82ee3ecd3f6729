"""The process of one episode, which the fork server forks. It parses the agent's messages and runs
the world.

Its only connection to the host is a socket to the service: it gets the specification and the
request to close, and sends the trace.
"""

from __future__ import annotations

import os
import resource
import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.gateway.settings import settings_from_line
from fumehood.monitors.review import RemoteReviewer
from fumehood.service.confinement import import_modules_early
from fumehood.service.hosted_episode import HostedEpisode
from fumehood.service.message_limits import MessageLimits, limits_from_json
from fumehood.service.open_episode import MonotonicClock
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.stalls import StopMeter
from fumehood.third_party.outside import Asker
from fumehood.third_party.process import route_questions
from fumehood.wire.episode_channel import (
    BEGIN,
    close_from_bytes,
    message_to_bytes,
    opening_from_bytes,
)
from fumehood.wire.ports import SpecRejected
from fumehood.wire.tool_server import start_grpc, warm_up

if TYPE_CHECKING:
    from fumehood.service.http_sockets import HttpSockets

WARM_UP_SOCKET = "warm_up.sock"
CALL_CPU_S = 10
"""Processor time for which one call may hold the interpreter's lock."""
BEAT_NS = 1_000_000_000
"""Interval at which the process looks for stops. It is longer than in other processes, because a
machine can host a thousand episodes whose agents wait."""
REPLY_S = 0.5
"""Time for the replies in progress after the world has failed."""


@dataclass(slots=True)
class _Prepared:
    """Settings of every process, read once in the fork server."""

    limits: MessageLimits
    http: HttpSockets | None


_prepared: list[_Prepared] = []


def prepare(arguments: JsonObject) -> None:
    """Prepare the fork server. If it was forked, its owner has imported what episodes need.

    The arguments are ``folder`` (of the service), ``limits`` (of messages), ``http`` (whether seats
    have HTTP sockets), ``helper`` (path of the program that boxes see, or None) and ``models``
    (settings of the gateway without keys, as a line, or None).
    """
    match arguments:
        case {
            "folder": str(folder),
            "limits": dict(limits),
            "http": bool(has_http),
            "helper": str() | None as helper,
            "models": str() | None as models,
        }:
            import_modules_early()
            bounds = limits_from_json(limits)
            warm_up(f"{folder}/{WARM_UP_SOCKET}")
            http = _http(bounds, helper, models) if has_http else None
            _prepared.append(_Prepared(bounds, http))
        case _:
            raise ValueError(f"unknown arguments: {arguments}")


def _http(limits: MessageLimits, helper: str | None, models: str | None) -> HttpSockets:
    # Imported here, because a server without HTTP starts in half the time.
    listener = import_module("fumehood.wire.http.listener")
    sockets = import_module("fumehood.service.http_sockets")
    http_sockets: HttpSockets = sockets.HttpSockets(
        Path(helper) if helper else None,
        settings_from_line(models) if models else None,
        listener.HttpLimits(**limits.http),
    )
    return http_sockets


def run_episode(channel: socket.socket, arguments: JsonObject) -> None:
    """Host one episode until the service closes it.

    The arguments are ``folder``, for the sockets, and ``files``: the connection that carries
    questions to what this process cannot reach, that to the monitors, and that to the broker of
    model requests, if there are models.
    """
    folder, monitors = Path(str(arguments["folder"])), None
    # The sockets of seats must be reachable for the boxes' users.
    os.umask(0o022)
    start_grpc()
    match arguments["files"]:
        case [int(questions), int(reviews), *broker]:
            route_questions(Asker(socket.socket(fileno=questions)).ask)
            monitors = RemoteReviewer(socket.socket(fileno=reviews))
            _start_http(broker)
    opening = receive_frame(channel)
    if opening is None:
        return
    meter = StopMeter(interval_ns=BEAT_NS)
    try:
        hosted = _open(opening, folder, meter, monitors)
    except SpecError as error:
        send_frame(channel, message_to_bytes(SpecRejected(error.field, error.reason)))
        return
    # Files in memory, such as those of a tmpfs, count for no other limit.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _limit_call()
    Thread(target=_follow_service, args=(channel, hosted, meter), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError):  # The service abandons the episode.
        for message in hosted.messages():
            send_frame(channel, message_to_bytes(message))
            if isinstance(message, SpecRejected):
                # The call on which the world failed has no reply yet.
                hosted.finish_replies(REPLY_S)


def _start_http(broker: Sequence[Json]) -> None:
    http = _prepared[-1].http
    if http is not None:
        http.start(*(socket.socket(fileno=file) for file in broker if isinstance(file, int)))


def _open(
    opening: bytes, folder: Path, meter: StopMeter, monitors: RemoteReviewer | None
) -> HostedEpisode:
    spec, exchanges, is_held = opening_from_bytes(opening)
    prepared = _prepared[-1]
    return HostedEpisode(
        spec,
        folder,
        MonotonicClock(meter),
        prepared.limits,
        http=prepared.http,
        exchanges=exchanges,
        reviewer=monitors,
        is_held=is_held,
    )


def _follow_service(channel: socket.socket, hosted: HostedEpisode, meter: StopMeter) -> None:
    """Begin and close the episode on request; end this process if the service is gone.

    Meanwhile measure stops, and move the limit of the processor time on.
    """
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    while True:
        _limit_call()
        if not poll.poll(meter.interval_ns / 1e6):
            meter.beat()
            continue
        try:
            frame = receive_frame(channel)
        except OSError:
            frame = None
        if frame is None and channel.fileno() == -1:
            return  # This process has ended its work and closed the socket.
        if frame is None:
            os._exit(0)
        if frame == BEGIN:
            hosted.begin()
            continue
        hosted.close(timed_out=close_from_bytes(frame))


def _limit_call() -> None:
    """Let the kernel end this process if this function is not called within ``CALL_CPU_S``.

    It is not called if native code does not release the interpreter's lock.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard_limit_s = resource.getrlimit(resource.RLIMIT_CPU)
    limit_s = int(usage.ru_utime + usage.ru_stime) + CALL_CPU_S + 1
    if limit_s < hard_limit_s:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, hard_limit_s))
