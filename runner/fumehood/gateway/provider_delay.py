"""How much wall time a seat has lost to models, each moment counted once however many calls wait in it."""

from __future__ import annotations


class LostTime:
    """The union of the intervals in which one seat was kept waiting. For one event loop."""

    def __init__(self) -> None:
        self._intervals = list[tuple[int, int]]()
        """Without overlaps, in no order."""

    def add(self, began_ms: int, ended_ms: int) -> int:
        """Take one more interval and return by how many milliseconds the union has grown.

        Args:
            began_ms: on any clock, the same for all.
            ended_ms: on that clock, not before it.
        """
        apart = list[tuple[int, int]]()
        known_ms = 0
        growing = (began_ms, ended_ms)
        for one in self._intervals:
            if one[1] < began_ms or ended_ms < one[0]:
                apart.append(one)
                continue
            known_ms += one[1] - one[0]
            growing = (min(growing[0], one[0]), max(growing[1], one[1]))
        self._intervals = [*apart, growing]
        return growing[1] - growing[0] - known_ms
