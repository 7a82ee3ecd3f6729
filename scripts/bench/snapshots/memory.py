"""How much memory this process holds for itself, at most and now."""

from __future__ import annotations

import threading
from pathlib import Path

STATUS = Path("/proc/self/status")


def own_megabytes() -> float:
    """Return the anonymous memory of this process, without mapped files."""
    return _field("RssAnon")


def resident_megabytes() -> float:
    """Return all memory of this process that is present, mapped files included."""
    return _field("VmRSS")


def _field(name: str) -> float:
    line = next(
        line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name)
    )
    return int(line.split()[1]) / 1024


class Peak:
    """Watches the process's own memory while a block runs. A context manager."""

    def __init__(self, interval_seconds: float = 0.02) -> None:
        self._interval_seconds = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.before = own_megabytes()
        self.megabytes = self.before
        """The most that was seen."""

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._interval_seconds):
            self.megabytes = max(self.megabytes, own_megabytes())
