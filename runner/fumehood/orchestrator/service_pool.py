"""The services of a run: separate processes, replaced when they die."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import SERVICE_UID
from fumehood.engines.engine import IN_IMAGES
from fumehood.engines.images.helper import build_helper
from fumehood.engines.ownership import owner_labels
from fumehood.engines.records import FolderRecords, SessionRecords, temporary_records
from fumehood.gateway.settings import GatewaySettings, settings_to_line
from fumehood.orchestrator.agents import NamedAgent
from fumehood.orchestrator.person import Person
from fumehood.orchestrator.stalls import Stalls
from fumehood.supervised.fork_server import LIBRARY_VARIABLES
from fumehood.wire.control_client import ControlClient

INHERITED_VARIABLES = frozenset(
    {
        "HOME",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "PATH",
        "PYTHONHASHSEED",
        "PYTHONPATH",
        "TZ",
        "VIRTUAL_ENV",
    }
    | {"GRPC_TRACE", "GRPC_VERBOSITY", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS"}
)
"""Environment variables that a service gets. Others, such as API keys, stay in this process."""
BAD_INPUT = 2
"""Exit status of a service that the user has to help."""
POLL_S = 0.005
"""Interval at which a socket that does not exist yet is looked for."""
START_TIMEOUT_S = 120.0
"""From the start of a service process until it answers. Starting takes a second of processor time,
which a busy machine grants late; a process that ended is noticed at once."""
START_ATTEMPTS = 3
"""Starts of a service before the run fails."""
DOUBT_TIMEOUT_S = 2.0
"""How long a service that failed to answer once may take to answer again."""
STOP_TIMEOUT_S = 10.0
"""From the request to stop until a service process is killed."""


@dataclass(frozen=True, slots=True)
class HttpOffer:
    """Settings of the HTTP sockets of seats."""

    helper: Path | None = None
    """Program that boxes find beside their sockets, as ``bin/fumehood``; None for none."""
    models: GatewaySettings | None = None
    """Providers of models, with keys; None for no models."""

    def arguments(self) -> tuple[str, ...]:
        """Return command-line arguments of a service; no keys, because other users read them."""
        helper = ("--helper", str(self.helper)) if self.helper else ()
        return ("--http", *helper, *(("--models",) if self.models else ()))

    def first_line(self) -> bytes:
        """Return the first line of a service's standard input; empty if it reads none."""
        return settings_to_line(self.models).encode() + b"\n" if self.models else b""


def http_offer(
    agents: Iterable[NamedAgent], models: GatewaySettings | None, progress: Callable[[str], None]
) -> HttpOffer | None:
    """Return what HTTP sockets offer to the agents of a run; None if no agent can use one.

    Args:
        agents: of the run.
        models: providers of models; None for no models.
        progress: called with one line when a step takes long.

    Raises:
        InputError: an ACP agent needs the helper, and there is no C compiler.
        InfraError: the helper cannot be compiled.
    """
    agents = tuple(agents)
    # The SDK uses gRPC.
    if not models and not any(agent.source.kind in IN_IMAGES for agent in agents):
        return None
    helper = build_helper(progress)
    for agent in agents:
        if agent.speaks_acp and helper is None:
            raise InputError(
                f"{agent.label} needs the in-box command, and this machine has no C compiler: "
                "install one (Debian: apt-get install musl-tools)"
            )
    return HttpOffer(helper, models)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """How the services of a pool are started."""

    http: HttpOffer | None = None
    """What HTTP sockets offer; None for no such sockets."""
    labels: Mapping[str, str] | None = None
    """Owner of processes and sockets; None for this process."""
    worlds: Sequence[str] = ()
    """Worlds whose libraries are loaded at the start."""
    limits: Mapping[str, int] | None = None
    """Limits of agents' messages that differ from the defaults, by name."""
    inline: bool = False
    """Play built-in agents inside the service, and open no episode for a box."""
    monitors: Sequence[MonitorSpec] = ()
    """Monitors of the steps of agents."""
    person: Person | None = None
    """Answers the monitor ``person``; None for no person."""
    temporary: Path | None = None
    """Folder of temporary files, such as those of databases; None for that of the machine."""

    def arguments(self) -> tuple[str, ...]:
        """Return command-line arguments of a service."""
        return (
            *(self.http.arguments() if self.http else ()),
            *(("--worlds", ",".join(self.worlds)) if self.worlds else ()),
            *(("--limits", json.dumps(dict(self.limits))) if self.limits else ()),
            *(("--inline",) if self.inline else ()),
            *(("--monitors",) if self.monitors else ()),
        )

    def first_lines(self) -> bytes:
        """Return what a service reads from its standard input."""
        monitors = json.dumps([spec.to_json() for spec in self.monitors]).encode() + b"\n"
        return (monitors if self.monitors else b"") + (self.http.first_line() if self.http else b"")


def service_command(directory: Path, options: Sequence[str]) -> list[str]:
    """Return the command that starts a service with sockets in ``directory``."""
    # With -P Python imports nothing from the current folder, which may hold untrusted code.
    return [sys.executable, "-P", "-m", "fumehood.service", str(directory), *options]


def service_environment(temporary: Path | None = None) -> dict[str, str]:
    """Return the environment variables of a service.

    Args:
        temporary: folder of its temporary files; None for that of the machine.
    """
    inherited = {name: text for name, text in os.environ.items() if name in INHERITED_VARIABLES}
    places = {} if temporary is None else {"TMPDIR": str(temporary)}
    return {**inherited, **LIBRARY_VARIABLES, **places}


class ServiceWorker:
    """One service process and the connection to it."""

    def __init__(self, directory: Path, options: ServiceOptions | None = None) -> None:
        """Start the process and wait until it answers.

        Args:
            directory: for its sockets; must not exist.
            options: how it is started; None for the defaults.

        Raises:
            InfraError: it does not start.
            InputError: it cannot run on this machine; it has printed the reason.
        """
        options = options or ServiceOptions()
        self._directory = directory
        arguments, passed_fds = options.arguments(), list[int]()
        if options.person is not None:
            own_end, service_end = socket.socketpair()
            options.person.serve(own_end)
            passed_fds.append(service_end.fileno())
            arguments = (*arguments, "--person", str(service_end.fileno()))
        self._process = subprocess.Popen(
            service_command(directory, arguments),
            stdin=subprocess.PIPE,
            pass_fds=passed_fds,
            env=service_environment(options.temporary),
            # Ctrl-C in the terminal is for the orchestrator, whose running episodes still need
            # services.
            start_new_session=True,
        )
        if options.person is not None:
            service_end.close()
        # A service ends when its standard input closes; the record is for one that is stopped or
        # stuck.
        self._record = SessionRecords().write(
            self._process.pid, dict(options.labels or owner_labels("service"))
        )
        if (lines := options.first_lines()) and self._process.stdin is not None:
            # A service that has ended already reports that below.
            with suppress(BrokenPipeError):
                self._process.stdin.write(lines)
                self._process.stdin.flush()
        self.client = ControlClient(str(directory / "control.sock"))
        self.episodes = 0
        """Episodes that are leased now."""
        try:
            self._wait_for(directory / "control.sock")
            self._wait_for_answer()
        except BaseException:
            self.stop()
            raise

    def _wait_for(self, socket: Path) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not socket.exists() and time.monotonic() < deadline:
            status = self._process.poll()
            if status == BAD_INPUT:
                raise InputError("a service did not start; the line above gives the remedy")
            if status is not None:
                raise InfraError(f"a service ended with status {status} before it answered")
            time.sleep(POLL_S)

    def _wait_for_answer(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return self.client.wait_until_ready(DOUBT_TIMEOUT_S)
            except InfraError:
                # A process that has died leaves its socket behind.
                if not self.alive or time.monotonic() > deadline:
                    raise

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    @property
    def usable(self) -> bool:
        """True while the process runs, answers, and none of its inline agents is stuck.

        It is asked only after it failed to answer once.
        """
        if not self.alive or self.client.has_stuck_agent:
            return False
        if not self.client.in_doubt:
            return True
        try:
            self.client.wait_until_ready(DOUBT_TIMEOUT_S)
        except InfraError:
            return False
        return True

    @property
    def owner_uid(self) -> int:
        """User of the process."""
        return self._directory.stat().st_uid

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process; :meth:`stop` is still needed."""
        self._process.kill()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the process and remove its sockets.

        Args:
            timeout_s: how long it may take to end before it is killed, seconds.
        """
        self.client.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._record.unlink(missing_ok=True)
        shutil.rmtree(self._directory, ignore_errors=True)


def _for_service(folder: Path) -> Path:
    """Make a folder inside that belongs to the user of the services."""
    inside = folder / "tmp"
    inside.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(inside, SERVICE_UID, SERVICE_UID)
    folder.chmod(0o711)
    return inside


@dataclass(slots=True)
class _Slot:
    worker: ServiceWorker


class ServicePool:
    """Several services; each episode is in exactly one. Safe to use from several threads."""

    def __init__(self, workers: int, options: ServiceOptions | None = None) -> None:
        """Start ``workers`` processes.

        Args:
            workers: how many.
            options: how they are started; None for the defaults.

        Raises:
            InfraError: a service does not start.
            InputError: a service cannot run on this machine.
        """
        options = options or ServiceOptions()
        labels = dict(options.labels or owner_labels("service"))
        self._lock = Lock()
        self._slots: list[_Slot] = []
        self.is_abandoned = False
        """Whether every service was killed, and none is replaced."""
        with ExitStack() as stack:
            records, records_on_disk = FolderRecords(), temporary_records()
            self._directory = records.make(labels)
            stack.callback(records.remove, self._directory)
            # A service may run as another user, who must be able to enter a folder whose name it
            # knows.
            self._directory.chmod(0o711)
            on_disk = records_on_disk.make(labels)
            stack.callback(records_on_disk.remove, on_disk)
            self._options = replace(options, labels=labels, temporary=_for_service(on_disk))
            stack.callback(self._stop_services)
            self.stalls = Stalls(lambda: [slot.worker.pid for slot in self._slots])
            """Delays of this process and of the services."""
            stack.callback(self.stalls.stop)
            with ThreadPoolExecutor(workers) as threads:
                for started in [threads.submit(self._add) for _ in range(workers)]:
                    started.result()
            self._resources_to_close = stack.pop_all()

    def __enter__(self) -> ServicePool:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def lease(self) -> Iterator[ControlClient]:
        """Lend the service with the fewest leases; one that has died is replaced first.

        Raises:
            InfraError: the replacement does not start, or the pool was abandoned.
        """
        with self._lock:
            slot = min(self._slots, key=lambda slot: slot.worker.episodes)
            if not (self.is_abandoned or slot.worker.usable):
                slot.worker.stop(timeout_s=0)
                slot.worker = self._start()
            if self.is_abandoned:
                raise InfraError("the run was stopped")
            worker = slot.worker
            worker.episodes += 1
        try:
            yield worker.client
        finally:
            with self._lock:
                worker.episodes -= 1

    @property
    def is_inline(self) -> bool:
        """Whether agents play inside the services."""
        return self._options.inline

    @property
    def owner_uid(self) -> int:
        """User of the services, who owns their sockets."""
        return self._slots[0].worker.owner_uid

    def workers(self) -> tuple[ServiceWorker, ...]:
        """Return the services as they are now."""
        return tuple(slot.worker for slot in self._slots)

    def abandon(self) -> None:
        """Kill every service, which fails its episodes, and replace none; :meth:`stop` is still
        needed."""
        self.is_abandoned = True
        for slot in self._slots:
            slot.worker.kill()

    def stop(self) -> None:
        """End every service, and remove every socket and temporary file."""
        self._resources_to_close.close()

    def _stop_services(self) -> None:
        for slot in self._slots:
            slot.worker.stop()

    def _add(self) -> None:
        self._slots.append(_Slot(self._start()))

    def _start(self) -> ServiceWorker:
        for _ in range(START_ATTEMPTS - 1):
            with suppress(InfraError):
                return self._start_once()
        return self._start_once()

    def _start_once(self) -> ServiceWorker:
        return ServiceWorker(self._directory / secrets.token_hex(4), self._options)
