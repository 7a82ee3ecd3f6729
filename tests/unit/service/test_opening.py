"""The opening of an episode: names of seats, its clock, and time for the waits of its monitors."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from fumehood.core.clock import StoppedClock
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.ledger import Budget, BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.monitors.review import HEAD_START_MS
from fumehood.service.hosted_episode import check_seats
from fumehood.service.open_episode import MonotonicClock, OpenEpisode
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.supervised.stalls import StopMeter
from tests.parts.monitors import LocalReviewer, Quiet
from tests.parts.specs import episode_spec


def seat(name: str) -> SeatSpec:
    return SeatSpec(name=name, instruction="", budget=Budget())


@pytest.mark.parametrize("name", ["a", "7", "agent_2", "_", "a" * 32])
def test_a_seat_is_named_by_letters_digits_and_underscores(name: str) -> None:
    check_seats(episode_spec(seats=[seat(name), seat("other")]))


@pytest.mark.parametrize("name", ["", "Agent", "a-b", "a b", "../a", "é", "a" * 33])
def test_any_other_name_of_a_seat_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="is not a name of lower-case letters, digits and '_'"):
        check_seats(episode_spec(seats=[seat(name), seat("other")]))


def test_the_clock_of_an_episode_leaves_out_stops() -> None:
    hours = iter(range(100))
    meter = StopMeter(lambda: next(hours) * 3600 * 10**9, lambda: 0)
    meter.beat()
    begun_ns = time.monotonic_ns()
    assert MonotonicClock(meter).now_ns() < begun_ns - 3600 * 10**9


def test_all_seats_get_the_time_back_in_which_monitors_decided() -> None:
    granted_ms: list[int] = []
    reviewer = LocalReviewer(Quiet())
    seats = [replace(seat(name), budget=Budget(wall_ms=1000)) for name in ("agent", "other")]
    episode = OpenEpisode(
        replace(episode_spec(seats=seats), monitors=("Quiet",)),
        MemoryRecorder(),
        StoppedClock(),
        SeatLimits(),
        on_broken=print,
        reviewer=reviewer,
        on_granted=granted_ms.append,
    )
    for waited_ns in (2_000_000, 500_000, 500_000):
        reviewer.on_wait(waited_ns)
    assert sum(granted_ms) == HEAD_START_MS + 3
    for endpoint in episode.endpoints:
        assert endpoint.view_task().remaining[BudgetKind.WALL_MS] == 1000 + HEAD_START_MS + 3
