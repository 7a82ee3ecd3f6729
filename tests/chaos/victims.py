"""Commands that are killed, and what is left of them."""

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


class Victim:
    """A command of ours at the head of a session of its own."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the context ends
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fumehood", *words],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": _search_path()} | dict(environment or {}),
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._said.close()

    @property
    def is_running(self) -> bool:
        """True while nobody has killed it and it has not ended."""
        return self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def said(self) -> str:
        """Return what it printed."""
        size = os.fstat(self._said.fileno()).st_size
        return os.pread(self._said.fileno(), size, 0).decode(errors="replace")

    def kill(self) -> None:
        """Kill it at once, without its children, and collect it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def wait(self, timeout_s: float) -> int | None:
        """Return its exit status, or None when it goes on."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def family(self) -> set[Being]:
        """Return the processes that it started, and those that they started."""
        return set(_descendants(self.pid))

    def children(self) -> set[Being]:
        """Return the processes that it started itself."""
        return {Being((child, start_time(child))) for child in _parents().get(self.pid, ())}


def _search_path() -> str:
    here = str(Path(__file__).parents[2])
    return os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])


class Being(tuple[int, int | None]):
    """A process: its number, and when it was started, for numbers are used again."""

    __slots__ = ()

    @property
    def pid(self) -> int:
        """The number."""
        return self[0]

    @property
    def is_alive(self) -> bool:
        """True while this very process is there."""
        return self[1] is not None and start_time(self.pid) == self[1] and not self._is_collected()

    def _is_collected(self) -> bool:
        """Tell whether it has ended, and only its parent has not asked how."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return True
        return status.rpartition(")")[2].split()[0] == "Z"

    def command(self) -> bytes:
        """Return its command line; empty when it is gone."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return b""

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, if it is still there."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def services_of(victim: Victim) -> list[Being]:
    """Return the sandbox services of a run."""
    return [one for one in victim.family() if b"fumehood.service" in one.command()]


def _parents() -> dict[int, list[int]]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    return parents


def _descendants(pid: int) -> Iterator[Being]:
    parents, waiting = _parents(), [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            waiting.append(child)
            yield Being((child, start_time(child)))
