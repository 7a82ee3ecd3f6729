"""Commands that tests kill, and the processes that remain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from fumehood.engines.ownership import start_time


class RunningCommand:
    """A ``fumehood`` command that leads a separate session."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """Start the command.

        Args:
            words: after ``fumehood``.
            cwd: its folder; None for this one.
            environment: variables to set.
            before: a program that runs the command that it gets as arguments.
        """
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the context ends
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", "fumehood", *words],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": _search_path()} | dict(environment or {}),
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._output.close()

    @property
    def is_running(self) -> bool:
        """True while it has not ended."""
        return self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return what it printed."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    @property
    def handles_signals(self) -> bool:
        """True when it has replaced the default effect of SIGTERM."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text("utf-8")
        except OSError:
            return False
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    @property
    def is_stopped(self) -> bool:
        """True while a signal has stopped it."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] == "T"

    def send(self, number: int) -> None:
        """Send it a signal if it runs."""
        if self.is_running:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it without its children, and collect its status."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def wait(self, timeout_s: float) -> int | None:
        """Return its exit status, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def descendants(self) -> set[Process]:
        """Return its child processes and their descendants."""
        return set(_descendants(self.pid))

    def children(self) -> set[Process]:
        """Return its child processes."""
        return set(children_of(self.pid))


def _search_path() -> str:
    here = str(Path(__file__).parents[2])
    return os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])


class Process(tuple[int, int | None]):
    """A process: its number and its start time, because numbers are reused."""

    __slots__ = ()

    @classmethod
    def of(cls, pid: int) -> Self:
        """Return the process that has this number now."""
        return cls((pid, start_time(pid)))

    @property
    def pid(self) -> int:
        """The number."""
        return self[0]

    @property
    def is_alive(self) -> bool:
        """True while this process runs."""
        return self[1] is not None and start_time(self.pid) == self[1] and not self._is_collected()

    def _is_collected(self) -> bool:
        """Return whether it has ended and its parent has not read its status yet."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return True
        return status.rpartition(")")[2].split()[0] == "Z"

    def command(self) -> bytes:
        """Return its command line; empty if it is gone."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return b""

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal if it runs."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def services_of(command: RunningCommand) -> list[Process]:
    """Return the sandbox services of a run, without the processes that they forked."""
    named = [one for one in command.descendants() if b"fumehood.service" in one.command()]
    forked = {child.pid for child in children_of(*(process.pid for process in named))}
    return [process for process in named if process.pid not in forked]


def children_of(*pids: int) -> list[Process]:
    """Return the child processes of processes."""
    parents = _parents()
    return [Process.of(child) for pid in pids for child in parents.get(pid, ())]


def _parents() -> dict[int, list[int]]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    return parents


def _descendants(pid: int) -> Iterator[Process]:
    parents, waiting = _parents(), [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            waiting.append(child)
            yield Process.of(child)
