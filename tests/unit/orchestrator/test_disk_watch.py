"""When a workspace is measured."""

from __future__ import annotations

from typing import Any

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.engine import INODE_BYTES, Exit, FreeSpace
from fumehood.orchestrator.workspaces import disk_watch
from fumehood.orchestrator.workspaces.disk_watch import (
    BYTES_PER_MS,
    LOOK_MS,
    MEASURE_MS,
    DiskWatch,
    wait_within_limit,
)

LIMIT_BYTES = 1000


class Disk:
    """A workspace on a disk, with a clock."""

    def __init__(self, used_at: dict[int, int] | None = None) -> None:
        """Make the disk lose so many bytes at these times, in milliseconds."""
        self.now_ms = 0
        self._used_at = used_at or {}
        self.measured_ms: list[int] = []
        self.looks_ms: list[int] = []
        self.is_visible = True

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def wait(self, timeout_ms: int) -> Exit | None:
        self.now_ms += timeout_ms
        return None

    def free_space(self) -> FreeSpace | None:
        self.looks_ms.append(self.now_ms)
        used_bytes = sum(size for at_ms, size in self._used_at.items() if at_ms <= self.now_ms)
        return FreeSpace((1 << 40) - used_bytes, 0) if self.is_visible else None

    def written_bytes(self, bytes_max: int | None = None) -> int:
        self.measured_ms.append(self.now_ms)
        return 0


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    def start(used_at: dict[int, int] | None = None) -> Any:
        disk: Any = Disk(used_at)
        monkeypatch.setattr(disk_watch, "monotonic", disk.monotonic)
        return disk, DiskWatch(disk, LIMIT_BYTES)

    return start


def test_a_disk_that_does_not_fill_is_measured_once_a_second(watched: Any) -> None:
    disk, watch = watched({120: LIMIT_BYTES})
    watch.wait(MEASURE_MS)
    assert disk.now_ms == MEASURE_MS


def test_a_disk_that_fills_is_measured_at_once(watched: Any) -> None:
    disk, watch = watched({120: LIMIT_BYTES + 1})
    watch.wait(MEASURE_MS)
    assert disk.now_ms == 3 * LOOK_MS


def test_what_was_found_may_not_be_written_again(watched: Any) -> None:
    disk, watch = watched({MEASURE_MS + 1: 101})
    watch.wait(MEASURE_MS)
    watch.found(LIMIT_BYTES - 100)
    watch.wait(MEASURE_MS)
    assert disk.now_ms == MEASURE_MS + LOOK_MS


def test_the_disk_is_looked_at_more_rarely_if_much_may_be_written(watched: Any) -> None:
    disk, _ = watched()
    watch = DiskWatch(disk, 400 * BYTES_PER_MS)
    disk.looks_ms.clear()
    watch.wait(MEASURE_MS)
    assert disk.looks_ms == [400, 800, 1000, 1000]


def test_freed_space_of_others_does_not_hide_what_is_written(watched: Any) -> None:
    disk, watch = watched({10: 600, 60: -5000, 110: 600})
    watch.wait(MEASURE_MS)
    assert disk.now_ms == 3 * LOOK_MS


def test_a_slow_measurement_does_not_delay_an_early_one(watched: Any) -> None:
    disk, watch = watched({MEASURE_MS + 501: LIMIT_BYTES + 1})
    watch.wait(MEASURE_MS)
    disk.now_ms += 500
    watch.wait(MEASURE_MS)
    assert disk.now_ms == MEASURE_MS + 500 + LOOK_MS


def test_early_measurements_take_a_tenth_of_the_time(watched: Any) -> None:
    disk, watch = watched(dict.fromkeys(range(0, 100_000, LOOK_MS), LIMIT_BYTES + 1))
    early_ms = 0
    while disk.now_ms < 90_000:
        begun_ms = disk.now_ms
        watch.wait(MEASURE_MS)
        is_early = disk.now_ms - begun_ms < MEASURE_MS
        disk.now_ms += 200
        early_ms += 200 * is_early
    assert 0.1 * 90_000 <= early_ms <= 0.1 * 90_000 + 1500


def test_a_disk_that_is_not_visible_is_measured_once_a_second(watched: Any) -> None:
    disk, watch = watched({120: LIMIT_BYTES + 1})
    disk.is_visible = False
    watch = DiskWatch(disk, LIMIT_BYTES)
    watch.wait(MEASURE_MS)
    assert disk.now_ms == MEASURE_MS


def test_files_count_as_used_space() -> None:
    assert FreeSpace(10, 5).used_since(FreeSpace(30, 8)) == 20 + 3 * INODE_BYTES


def test_a_run_that_was_stopped_waits_no_longer(watched: Any) -> None:
    disk, _ = watched()
    with pytest.raises(InfraError, match="the run was stopped"):
        wait_within_limit(disk, "it", LIMIT_BYTES, 3600, lambda: True)
    assert disk.now_ms == MEASURE_MS


def test_a_time_limit_ends_the_wait(watched: Any) -> None:
    disk, _ = watched()
    assert wait_within_limit(disk, "it", LIMIT_BYTES, 2.5) == (None, "")
    assert disk.measured_ms == [1000, 2000, 2500]
