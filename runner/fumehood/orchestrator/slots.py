"""The slots of a run: so many episodes, or groups of short ones, are played at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition

from fumehood.core.errors import InfraError


class Slots:
    """A fixed number of slots. Safe to use from several threads."""

    def __init__(self, number: int) -> None:
        """Create ``number`` free slots."""
        self._free = number
        self._changed = Condition()
        self._places = count()
        self._waiting = set[int]()
        """Places of those that wait."""
        self._playing = 0
        """Episodes that have a slot."""
        self._is_closed = False

    @contextmanager
    def one(self, episodes: int) -> Iterator[Callable[[], None]]:
        """Yield a function that waits for a free slot and takes it; free the slot at the end.

        Of several that wait, the earliest context gets the next slot. The function has no effect
        after the slot is taken, and raises ``InfraError`` if the run is stopped before.

        Args:
            episodes: number of episodes that are played in the slot.
        """
        with self._changed:
            place = next(self._places)
        is_taken = False

        def take() -> None:
            nonlocal is_taken
            if not is_taken:
                self._take(place, episodes)
                is_taken = True

        try:
            yield take
        finally:
            if is_taken:
                self._give_back(episodes)

    def close(self) -> int:
        """Let no episode take a slot any more; return the number of episodes that have one."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            return self._playing

    def _take(self, place: int, episodes: int) -> None:
        with self._changed:
            self._waiting.add(place)
            self._changed.wait_for(
                lambda: self._is_closed or (self._free > 0 and place == min(self._waiting))
            )
            self._waiting.remove(place)
            if self._is_closed:
                raise InfraError("the run was stopped before the episode began")
            self._free -= 1
            self._playing += episodes
            # The next that waits may take another free slot.
            self._changed.notify_all()

    def _give_back(self, episodes: int) -> None:
        with self._changed:
            self._free += 1
            self._playing -= episodes
            self._changed.notify_all()
