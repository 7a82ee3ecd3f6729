"""A clock that jumps changes when a seat's time is over, and nothing else that is ever told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from threading import Lock

from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.clock import Clock, StoppedClock
from fumehood.core.episode import Reply
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Finished, Refusal, RefusalKind
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from fumehood.testing.memory_recorder import MemoryRecorder
from tests.parts.specs import episode_spec
from tests.property.packages.values import bounded

WALL_MS = 1000
MS = 1_000_000
CALLS = 6


class JumpingClock:
    """Goes by what it is told to, forwards or back."""

    def __init__(self, jumps_ms: Iterable[int]) -> None:
        self._jumps: Iterator[int] = iter(jumps_ms)
        self._now_ns = 10**18

    def now_ns(self) -> int:
        self._now_ns += next(self._jumps, 0) * MS
        return self._now_ns


def _played(clock: Clock) -> tuple[list[object], list[object]]:
    """Return all that an agent was told but for its time, and all that was written down."""
    spec = episode_spec(wall_ms=WALL_MS, calls=20)
    recorder, profile = MemoryRecorder(), HARNESS_MODES.load("native")()
    episode = profile.open_episode(spec, recorder, clock)
    desk = SeatEndpoint(
        episode.seats[0],
        recorder=recorder,
        lock=Lock(),
        clock=clock,
        limits=SeatLimits(),
        on_broken=lambda why: None,
    )
    told: list[object] = []
    for number in range(CALLS):
        answer = desk.call("get_account", json.dumps({"id": f"ax{number}"}), "")
        if isinstance(answer, Reply):
            assert answer.remaining[BudgetKind.WALL_MS] >= 0
            told.append(answer.result)
        else:
            told.append(answer)
    told.append(desk.submit(Finished("done")))
    episode.close()
    return told, [*recorder.written()]


UNTOUCHED = _played(StoppedClock())


@bounded
@given(st.lists(st.integers(-(10**9), 0), max_size=40))
def test_a_clock_that_goes_back_is_never_told(jumps_ms: list[int]) -> None:
    assert _played(JumpingClock(jumps_ms)) == UNTOUCHED


@bounded
@given(st.lists(st.integers(-(10**6), 10**6), max_size=40))
def test_whose_time_is_over_has_no_time_again(jumps_ms: list[int]) -> None:
    told, written = _played(JumpingClock(jumps_ms))
    ended = [one for one in told if isinstance(one, Refusal)]
    first = told.index(ended[0]) if ended else len(told)
    assert told[:first] == UNTOUCHED[0][:first]
    assert all(one == Refusal(RefusalKind.ENDED) for one in told[first:-1])
    ends = [event for event in written if isinstance(event, dict) and event["kind"] == "seat_ended"]
    assert len(ends) == 1
