"""Keeps what a workspace writes within its limit.

A measurement takes longer the more files there are, so it is made once a second. In between, the
free space of the disk is read often, because that takes microseconds. When it has fallen by more
than the workspace may still write, the workspace is measured at once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic

from fumehood.core.errors import InfraError
from fumehood.engines.engine import Exit, TooLarge, WorkspaceBox

MEASURE_MS = 1000
"""Interval at which a workspace is measured, and at which a run can be abandoned."""
LOOK_MS = 50
"""Interval at which the free space of the disk is read, at least."""
BYTES_PER_MS = 4 << 20
"""More than disks can write. The interval is longer if the workspace may still write much."""
_EARLY_FACTOR, _SAVED_S = 10, 10.0
"""Early measurements take at most one part in so many of the time, of which this much can be saved
for several at once: other programs of the host can cause them."""


class DiskWatch:
    """Waits for the end of a workspace, and returns early if its disk fills."""

    def __init__(self, box: WorkspaceBox, limit_bytes: int) -> None:
        """Read the free space of the disk.

        Args:
            box: the workspace.
            limit_bytes: size that it may write.
        """
        self._box, self._limit_bytes = box, limit_bytes
        self._rest_bytes, self._free = limit_bytes, box.free_space()
        self._returned_s = monotonic()
        self._early_from_s = -inf
        """No early measurement is made before this time."""
        self._is_early = False
        """Whether an early measurement follows the last :meth:`wait`."""

    def wait(self, timeout_ms: int) -> Exit | None:
        """Wait until the workspace ends, or must be measured.

        Args:
            timeout_ms: return after this time at the latest.

        Returns:
            How the workspace ended; None if it still runs.
        """
        before, fallen_bytes = self._free, 0
        now_s = monotonic()
        if self._is_early:
            taken_s = now_s - self._returned_s
            saved_from_s = max(self._early_from_s, self._returned_s - _SAVED_S)
            self._early_from_s = saved_from_s + _EARLY_FACTOR * taken_s
        self._is_early = False
        end_s = now_s + timeout_ms / 1000
        ended = None
        while ended is None and (left_ms := round((end_s - monotonic()) * 1000)) > 0:
            if before is None:
                ended = self._box.wait(left_ms)
                continue
            look_ms = max(LOOK_MS, (self._rest_bytes - fallen_bytes) // BYTES_PER_MS)
            ended = self._box.wait(min(look_ms, left_ms))
            now = self._box.free_space()
            if now is None:
                continue
            # Other programs can free space meanwhile.
            fallen_bytes += max(0, now.used_since(before))
            before = now
            if fallen_bytes > self._rest_bytes and monotonic() >= self._early_from_s:
                self._is_early = True
                break
        # Before the measurement that follows, because the workspace can write during it.
        self._free = self._box.free_space() if ended is None else None
        self._rest_bytes = self._limit_bytes
        self._returned_s = monotonic()
        return ended

    def found(self, written_bytes: int) -> None:
        """Note what one of the boxes on the disk has written, after :meth:`wait` returned."""
        self._rest_bytes = min(self._rest_bytes, self._limit_bytes - written_bytes)


def wait_within_limit(
    box: WorkspaceBox,
    name: str,
    limit_bytes: int,
    timeout_s: float,
    is_abandoned: Callable[[], bool] = lambda: False,
) -> tuple[Exit | None, str]:
    """Wait until a workspace ends or writes too much.

    Args:
        box: the workspace.
        name: what it is called in the message.
        limit_bytes: size that it may write.
        timeout_s: return after this time at the latest.
        is_abandoned: whether the run was stopped.

    Returns:
        How it ended, None if it still runs; and what was too much, empty if nothing was.

    Raises:
        InfraError: the run was stopped, or the engine cannot measure a workspace that runs.
    """
    watch, end_s = DiskWatch(box, limit_bytes), monotonic() + timeout_s
    while (left_ms := round((end_s - monotonic()) * 1000)) > 0:
        if (ended := watch.wait(min(MEASURE_MS, left_ms))) is not None:
            return ended, ""
        if is_abandoned():
            raise InfraError("the run was stopped")
        try:
            written_bytes = box.written_bytes(limit_bytes)
        except TooLarge as error:
            return None, str(error)
        except InfraError:
            # One that has ended meanwhile cannot be measured.
            if (ended := box.wait(0)) is not None:
                return ended, ""
            raise
        if written_bytes > limit_bytes:
            return None, f"{name} wrote {written_bytes} bytes, of at most {limit_bytes}"
        watch.found(written_bytes)
    return None, ""
