"""Only stops are measured, not load that other processes can cause."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from threading import Barrier, Event, Thread

import pytest

from fumehood.supervised.stalls import (
    INTERVAL_NS,
    READING_NS,
    BusyTime,
    StopMeter,
    stop_meter,
)

MS = 1_000_000
INTERVAL_MS = INTERVAL_NS // MS


@dataclass
class Machine:
    """A clock and a processor that the test controls."""

    now_ms: int = 1_000
    busy_ms: int = 0

    def meter(self) -> StopMeter:
        return StopMeter(lambda: self.now_ms * MS, lambda: self.busy_ms * MS)

    def pass_time(self, passed_ms: int, busy_ms: int = 0) -> None:
        self.now_ms += passed_ms
        self.busy_ms += busy_ms


def test_a_stop_is_measured() -> None:
    machine = Machine()
    meter = machine.meter()
    machine.pass_time(20_000 + INTERVAL_MS)
    meter.beat()
    assert meter.stopped_ns() == 20_000 * MS


def test_a_stop_is_known_before_the_thread_runs_again() -> None:
    machine = Machine()
    meter = machine.meter()
    machine.pass_time(20_000)
    assert meter.stopped_ns() == (20_000 - INTERVAL_MS) * MS


@pytest.mark.parametrize("busy_ms", [20_000, 60_000])
def test_time_in_which_the_process_ran_or_waited_for_a_processor_is_no_stop(busy_ms: int) -> None:
    machine = Machine()
    meter = machine.meter()
    machine.pass_time(20_000, busy_ms)
    meter.beat()
    assert meter.stopped_ns() == 0


def test_regular_beats_and_small_delays_are_no_stops() -> None:
    machine = Machine()
    meter = machine.meter()
    for _ in range(1_000):
        machine.pass_time(INTERVAL_MS + 400)
        meter.beat()
    assert meter.stopped_ns() == 0


def test_the_processor_time_is_read_rarely_while_the_process_wakes_up_in_time() -> None:
    machine, readings = Machine(), count()
    meter = StopMeter(lambda: machine.now_ms * MS, lambda: 0 * next(readings))
    for _ in range(100 * READING_NS // INTERVAL_NS):
        machine.pass_time(INTERVAL_MS)
        meter.beat()
    assert next(readings) == 101


def test_a_stop_is_measured_as_shorter_by_at_most_a_longer_interval() -> None:
    machine = Machine()
    interval_ms = 4 * INTERVAL_MS
    meter = StopMeter(
        lambda: machine.now_ms * MS, lambda: machine.busy_ms * MS, interval_ns=interval_ms * MS
    )
    machine.pass_time(20_000)
    assert meter.stopped_ns() == (20_000 - interval_ms) * MS


def test_a_stop_between_two_readings_is_measured() -> None:
    machine = Machine()
    meter = machine.meter()
    for _ in range(READING_NS // INTERVAL_NS + 1):
        machine.pass_time(INTERVAL_MS, busy_ms=10)
        meter.beat()
    machine.pass_time(20_000 + INTERVAL_MS)
    meter.beat()
    assert meter.stopped_ns() == (20_000 - 10) * MS


def test_a_process_has_one_meter() -> None:
    assert stop_meter() is stop_meter()


def test_the_time_that_a_thread_waited_for_a_processor_still_counts_after_its_end() -> None:
    busy, begun, may_end = BusyTime(), Barrier(3), Event()

    def compete() -> None:
        begun.wait()
        # A digest of many bytes is computed without the interpreter's lock.
        sha256(bytes(64 << 20))
        begun.wait()
        may_end.wait()

    processors = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(processors)})
        threads = [Thread(target=compete) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait()
        begun.wait()
        before_ns = busy.passed_ns()
        may_end.set()
        for thread in threads:
            thread.join()
        assert busy.passed_ns() >= before_ns
    finally:
        os.sched_setaffinity(0, processors)
