"""Signals that ask this process to stop: SIGINT, SIGTERM and SIGHUP.

By default a signal raises :class:`Stopped` at once. Code that holds boxes, services or folders
defers signals and looks for them between its steps, because an exception at an arbitrary place
could leave one of them behind.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OF_SIGNAL = 128


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        """The signal."""


class StopRequests:
    """Counts the signals that were deferred."""

    def __init__(self) -> None:
        self.count = 0
        """Signals so far. The first asks to finish what has begun, the second to abandon it."""
        self._number = 0

    def receive(self, number: int, _: FrameType | None = None) -> None:
        """Count a signal; a handler of :func:`signal.signal`."""
        self._number = self._number or number
        self.count += 1

    def check(self) -> None:
        """Raise the first signal, if there was one.

        Raises:
            Stopped: a signal was received.
        """
        if self.count:
            raise Stopped(self._number)


def raise_stop_signals() -> None:
    """Raise :class:`Stopped` for every signal, except those that this process was started to
    ignore."""
    for number in _handled():
        signal.signal(number, _raise)


def ignore_stop_signals() -> None:
    """Ignore further signals, because this process is about to end."""
    for number in _handled():
        signal.signal(number, signal.SIG_IGN)


def exit_status(number: int) -> int:
    """Return the exit status after a signal, in the notation of shells."""
    return _OF_SIGNAL + number


@contextmanager
def deferred_stop_signals() -> Iterator[StopRequests]:
    """Count signals instead of raising them, and raise the first at the end.

    In another thread than the main one it counts nothing, because only the main thread handles
    signals (signal, Python standard library).

    Raises:
        Stopped: a signal was received, and nothing else was raised.
    """
    requests = StopRequests()
    if current_thread() is not main_thread():
        yield requests
        return
    previous = {number: signal.signal(number, requests.receive) for number in _handled()}
    try:
        yield requests
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    requests.check()


def _handled() -> list[signal.Signals]:
    """Return the signals that are not ignored; ``nohup`` and shells ignore some for a command."""
    return [
        number for number in STOP_SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]


def _raise(number: int, _: FrameType | None) -> None:
    raise Stopped(number)
