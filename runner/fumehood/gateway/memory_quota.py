"""How much of requests one seat may have in the service's memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class BodyRoom:
    """A number of bytes, shared by the requests of one seat. For one event loop."""

    def __init__(self, size_bytes: int) -> None:
        self._left_bytes = size_bytes

    @contextmanager
    def hold(self) -> Iterator[Held]:
        """Let one request take room, and take it back when the request is over."""
        held = Held(self)
        try:
            yield held
        finally:
            self._left_bytes += held.size_bytes

    def take(self, size_bytes: int) -> bool:
        """Take room, or tell that there is none."""
        fits = size_bytes <= self._left_bytes
        if fits:
            self._left_bytes -= size_bytes
        return fits


class Held:
    """What one request has taken."""

    def __init__(self, room: BodyRoom) -> None:
        self.size_bytes = 0
        self._room = room

    def take(self, size_bytes: int) -> bool:
        """Take more, or tell that there is none."""
        taken = self._room.take(size_bytes)
        self.size_bytes += size_bytes if taken else 0
        return taken
