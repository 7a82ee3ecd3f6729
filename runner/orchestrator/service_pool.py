"""The sandbox services of a run: processes of their own, started here, replaced when they die."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType

from runner.core.errors import InfraError
from runner.wire.control_client import ControlClient

START_TIMEOUT_S = 30.0
"""From the start of a service process until it answers."""
DOUBT_TIMEOUT_S = 2.0
"""For a service that failed to answer to show that it still does."""
STOP_TIMEOUT_S = 10.0
"""From being told to stop until a service process is killed."""


class ServiceWorker:
    """One service process and the connection to it."""

    def __init__(self, directory: Path) -> None:
        """Start the process and wait until it answers.

        Args:
            directory: for its sockets; must not exist.

        Raises:
            InfraError: it does not come up.
        """
        self._directory = directory
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runner.service", str(directory)],
            stdin=subprocess.PIPE,
            # A Ctrl-C in the terminal is for the orchestrator, whose running episodes still need this one.
            start_new_session=True,
        )
        self.client = ControlClient(str(directory / "control.sock"))
        self.episodes = 0
        """Open now, as far as this side knows."""
        try:
            self.client.wait_until_ready(START_TIMEOUT_S)
        except InfraError:
            self.stop()
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
        shutil.rmtree(self._directory, ignore_errors=True)


@dataclass(slots=True)
class _Slot:
    worker: ServiceWorker


class ServicePool:
    """N services; an episode lives in exactly one. Safe to use from several threads."""

    def __init__(self, workers: int) -> None:
        """Start ``workers`` processes.

        Raises:
            InfraError: one does not come up.
        """
        # Short, because a socket's path has at most 107 bytes; closed to others by mkdtemp. A box may see the
        # host's path of what it is shown, so these names neither count nor say what they are for.
        self._directory = Path(tempfile.mkdtemp(prefix=""))
        self._lock = Lock()
        self._slots: list[_Slot] = []
        try:
            for _ in range(workers):
                self._slots.append(_Slot(self._start()))
        except InfraError:
            self.stop()
            raise

    def __enter__(self) -> ServicePool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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

    def workers(self) -> tuple[ServiceWorker, ...]:
        """Return the services as they are now."""
        return tuple(slot.worker for slot in self._slots)

    def stop(self) -> None:
        """End every service and remove every socket."""
        for slot in self._slots:
            slot.worker.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self) -> ServiceWorker:
        return ServiceWorker(self._directory / secrets.token_hex(4))
