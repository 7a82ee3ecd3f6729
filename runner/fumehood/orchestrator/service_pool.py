"""The sandbox services of a run: processes of their own, started here, replaced when they die."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType

from fumehood.core.errors import FumehoodError, InfraError, InputError
from fumehood.engines.ownership import owner_labels
from fumehood.engines.records import FolderRecords, SessionRecords, default_folder
from fumehood.gateway.serialization import settings_to_line
from fumehood.gateway.settings import GatewaySettings
from fumehood.wire.control_client import ControlClient

HANDED_ON = frozenset(
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
"""Variables that a service gets: what it takes to run Python. Keys stay here."""
BAD_INPUT = 2
"""Exit status of a service that the user has to help."""
POLL_S = 0.005
"""Between two looks for a socket that is not there yet."""
START_TIMEOUT_S = 30.0
"""From the start of a service process until it answers."""
START_ATTEMPTS = 3
"""Tries until a service that does not come up is a failure."""
DOUBT_TIMEOUT_S = 2.0
"""For a service that failed to answer to show that it still does."""
STOP_TIMEOUT_S = 10.0
"""From being told to stop until a service process is killed."""


@dataclass(frozen=True, slots=True)
class HttpOffer:
    """What the second socket of every seat offers."""

    helper: Path | None = None
    """A program that boxes find beside their sockets, as ``bin/fumehood``; None for none."""
    models: GatewaySettings | None = None
    """Who answers for models, with keys; None for nobody."""

    def arguments(self) -> tuple[str, ...]:
        """Return how a service is told, keys excepted: everybody on this machine can read arguments."""
        helper = ("--helper", str(self.helper)) if self.helper else ()
        return ("--http", *helper, *(("--models",) if self.models else ()))

    def first_line(self) -> bytes:
        """Return what a service reads first from its standard input; empty where it reads nothing."""
        return settings_to_line(self.models).encode() + b"\n" if self.models else b""


class ServiceWorker:
    """One service process and the connection to it."""

    def __init__(
        self,
        directory: Path,
        http: HttpOffer | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        worlds: Sequence[str] = (),
        limits: Mapping[str, int] | None = None,
        inline: bool = False,
    ) -> None:
        """Start the process and wait until it answers.

        Args:
            directory: for its sockets; must not exist.
            http: what its second sockets offer; None for no such sockets.
            labels: of its owner; None for this process on nobody's behalf.
            worlds: names of those whose libraries are loaded at once.
            limits: of what agents may send, by name, where they are not the usual ones.
            inline: play built-in agents inside the service, and open no episode for a box.

        Raises:
            InfraError: it does not come up.
            InputError: it cannot run as this machine is; it has said why on standard error.
        """
        self._directory = directory
        told = (
            *(http.arguments() if http else ()),
            *(("--worlds", ",".join(worlds)) if worlds else ()),
        )
        told += ("--limits", json.dumps(dict(limits))) if limits else ()
        told += ("--inline",) if inline else ()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fumehood.service", str(directory), *told],
            stdin=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name in HANDED_ON},
            # A Ctrl-C in the terminal is for the orchestrator, whose running episodes still need this one.
            start_new_session=True,
        )
        # It ends with us by itself; this is for one that cannot, being stopped or stuck.
        self._note = SessionRecords(default_folder()).write(
            self._process.pid, dict(labels or owner_labels("service"))
        )
        if http is not None and self._process.stdin is not None:
            # A service that has ended by now says so itself.
            with suppress(BrokenPipeError):
                self._process.stdin.write(http.first_line())
                self._process.stdin.flush()
        self.client = ControlClient(str(directory / "control.sock"))
        self.episodes = 0
        """Open now, as far as this side knows."""
        try:
            self._wait_for(directory / "control.sock")
            self._wait_for_answer()
        except FumehoodError:
            self.stop()
            raise

    def _wait_for(self, socket: Path) -> None:
        patience = time.monotonic() + START_TIMEOUT_S
        while not socket.exists() and time.monotonic() < patience:
            status = self._process.poll()
            if status == BAD_INPUT:
                raise InputError("a sandbox service did not start; the line above says what to do")
            if status is not None:
                raise InfraError(f"a sandbox service ended with status {status} before it answered")
            time.sleep(POLL_S)

    def _wait_for_answer(self) -> None:
        patience = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return self.client.wait_until_ready(DOUBT_TIMEOUT_S)
            except InfraError:
                # One that died meanwhile leaves its socket there, and would be waited for in vain.
                if not self.alive or time.monotonic() > patience:
                    raise

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    @property
    def usable(self) -> bool:
        """True while the process runs and, where that is in doubt, answers."""
        if not self.alive or not self.client.in_doubt:
            return self.alive
        try:
            self.client.wait_until_ready(DOUBT_TIMEOUT_S)
        except InfraError:
            return False
        return True

    @property
    def owner_uid(self) -> int:
        """User as whom the process runs."""
        return self._directory.stat().st_uid

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def stop(self) -> None:
        """End the process, kindly at first, and remove its sockets."""
        self.client.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._note.unlink(missing_ok=True)
        shutil.rmtree(self._directory, ignore_errors=True)


@dataclass(slots=True)
class _Slot:
    worker: ServiceWorker


class ServicePool:
    """N services; an episode lives in exactly one. Safe to use from several threads."""

    def __init__(
        self,
        workers: int,
        http: HttpOffer | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        worlds: Sequence[str] = (),
        limits: Mapping[str, int] | None = None,
        inline: bool = False,
    ) -> None:
        """Start ``workers`` processes.

        Args:
            workers: how many.
            http: what the second socket of every seat offers; None for no such sockets.
            labels: of the owner of processes and sockets; None for this process on nobody's behalf.
            worlds: names of those whose libraries are loaded at once.
            limits: of what agents may send, by name, where they are not the usual ones.
            inline: play built-in agents inside the service, and open no episode for a box.

        Raises:
            InfraError: one does not come up.
            InputError: none can run as this machine is.
        """
        self._labels = dict(labels or owner_labels("service"))
        self._folders = FolderRecords()
        self._directory = self._folders.make(self._labels)
        # A service may run as a user of its own, who must get through to a folder that it can name.
        self._directory.chmod(0o711)
        self._http = http
        self._worlds = worlds
        self._limits = dict(limits or {})
        self._inline = inline
        self._lock = Lock()
        self._slots: list[_Slot] = []
        try:
            for _ in range(workers):
                self._slots.append(_Slot(self._start()))
        except FumehoodError:
            self.stop()
            raise

    def __enter__(self) -> ServicePool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @contextmanager
    def lease(self) -> Iterator[ControlClient]:
        """Lend the service with the fewest open episodes; one that is dead or dying is replaced first.

        Raises:
            InfraError: the replacement does not come up.
        """
        with self._lock:
            slot = min(self._slots, key=lambda slot: slot.worker.episodes)
            if not slot.worker.usable:
                slot.worker.stop()
                slot.worker = self._start()
            worker = slot.worker
            worker.episodes += 1
        try:
            yield worker.client
        finally:
            with self._lock:
                worker.episodes -= 1

    @property
    def owner_uid(self) -> int:
        """User as whom the services run: whoever owns their sockets."""
        return self._slots[0].worker.owner_uid

    def workers(self) -> tuple[ServiceWorker, ...]:
        """Return the services as they are now."""
        return tuple(slot.worker for slot in self._slots)

    def stop(self) -> None:
        """End every service and remove every socket."""
        for slot in self._slots:
            slot.worker.stop()
        self._folders.remove(self._directory)

    def _start(self) -> ServiceWorker:
        for _ in range(START_ATTEMPTS - 1):
            with suppress(InfraError):
                return self._start_once()
        return self._start_once()

    def _start_once(self) -> ServiceWorker:
        return ServiceWorker(
            self._directory / secrets.token_hex(4),
            self._http,
            self._labels,
            worlds=self._worlds,
            limits=self._limits,
            inline=self._inline,
        )
