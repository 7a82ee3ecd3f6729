"""Runs the service as a process."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from fumehood.core.user_ids import SERVICE_UID
from fumehood.harness_modes.registry import preload, start_checkers_of
from fumehood.monitors.host import MonitorHost
from fumehood.service.confinement import confine, import_modules_early, prefer_to_boxes
from fumehood.service.forked_episode import EpisodeProcesses
from fumehood.service.host import Host
from fumehood.service.inline import load_builtin_agents
from fumehood.service.message_limits import MessageLimits
from fumehood.service.open_episode import MonotonicClock
from fumehood.supervised.forked_server import ForkedServer
from fumehood.wire.control_server import ControlServer

if TYPE_CHECKING:
    from fumehood.gateway.settings import GatewaySettings
    from fumehood.service.model_brokers import ModelBrokers

CONTROL_SOCKET = "control.sock"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Settings of the HTTP sockets of seats."""

    helper: Path | None = None
    """Program that boxes see beside their sockets, as ``bin/fumehood``."""
    read_models: Callable[[], GatewaySettings] | None = None
    """Reads the settings of the gateway with the keys; None for no models. Called when the fork
    server exists, which must not have the keys."""


def serve(
    directory: Path,
    *,
    until_stdin_closes: bool,
    http: HttpSettings | None = None,
    worlds: Sequence[str] = (),
    limits: MessageLimits | None = None,
    inline: bool = False,
    monitor_host: MonitorHost | None = None,
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
        monitor_host: runs the monitors of the steps of agents; None for no monitors.
    """
    bounds = limits or MessageLimits()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = directory.resolve()  # A client may have another working directory.
    processes, models = None, None
    _import(worlds, has_http=http is not None)
    if not inline:
        prefer_to_boxes()
        server = ForkedServer()
        models = http.read_models() if http and http.read_models else None
        processes = EpisodeProcesses(
            server,
            directory,
            bounds,
            has_http=http is not None,
            helper=http.helper if http else None,
            models=models,
            monitors=monitor_host,
        )
    brokers = _model_brokers(models) if models else None
    checkers = start_checkers_of(worlds)
    if inline:
        load_builtin_agents()
    confine(directory)
    # The process of an episode has another user, who enters the episode's folder.
    directory.chmod(0o711 if processes and os.getuid() == SERVICE_UID else 0o700)
    for checker in checkers:
        checker.wait_until_ready()
    if brokers is not None:
        brokers.start()
    if monitor_host is not None:
        monitor_host.start(brokers.ask if brokers else None)
    if processes is not None:
        processes.start(brokers.serve if brokers else None)
    host = Host(MonotonicClock(), bounds, processes, monitor_host)
    control = ControlServer(host, str(directory / CONTROL_SOCKET))
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        Thread(target=_wait_for_end_of_stdin, args=(stop,), daemon=True).start()
    stop.wait()
    # First, so that the clients of open episodes see a broken stream and not a regular end.
    control.stop()
    host.close()
    for stop_part in [part.stop for part in (processes, monitor_host, brokers) if part]:
        stop_part()


def _import(worlds: Sequence[str], *, has_http: bool) -> None:
    """Import everything that episodes need, once for this process and its fork server."""
    gc.disable()  # A collection has nothing to release, and takes a tenth of the time.
    import_modules_early()
    preload(worlds)
    if has_http:  # These libraries take longer than all others.
        import_module("fumehood.service.http_sockets")
    gc.enable()


def _model_brokers(models: GatewaySettings) -> ModelBrokers:
    # Imported here, because a service without models starts in half the time.
    from fumehood.service.model_brokers import ModelBrokers

    return ModelBrokers(models)


def _wait_for_end_of_stdin(stop: Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    stop.set()
