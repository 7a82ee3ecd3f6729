"""Pauses a box for its owner, and for measurements in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class Pausing:
    """Knows whether a box is paused. Safe to use from several threads."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Create it for a box that is not paused.

        Args:
            pause: stops all programs of the box.
            resume: continues them.
        """
        self.is_paused = False
        """Whether the owner paused the box."""
        self._pause = pause
        self._resume = resume
        self._lock = Lock()

    def pause(self) -> None:
        """Stop all programs until :meth:`resume`."""
        with self._lock:
            self._pause()
            self.is_paused = True

    def resume(self) -> None:
        """Continue all programs."""
        with self._lock:
            self.is_paused = False
            self._resume()

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """Let no program run meanwhile; the owner can neither pause nor resume the box."""
        with self._lock:
            if self.is_paused:
                yield
                return
            try:
                self._pause()
                yield
            finally:
                self._resume()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Start a program of the box meanwhile; no pause begins.

        dockerd answers no request about a container whose new program was paused before it began,
        and runc starts no program in a paused container.
        """
        with self._lock:
            yield
