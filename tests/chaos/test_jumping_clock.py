"""A clock that jumps changes when a seat's time is over, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from threading import Lock

from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.clock import Clock, StoppedClock
from fumehood.core.episode import Reply
from fumehood.core.ledger import BudgetKind
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished, Refusal, RefusalKind
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from tests.parts.specs import episode_spec
from tests.property.packages.values import bounded

WALL_MS = 1000
MS = 1_000_000
CALLS = 6


class JumpingClock:
    """Jumps by given amounts, forwards or back."""

    def __init__(self, jumps_ms: Iterable[int]) -> None:
        self._jumps: Iterator[int] = iter(jumps_ms)
        self._now_ns = 10**18

    def now_ns(self) -> int:
        self._now_ns += next(self._jumps, 0) * MS
        return self._now_ns


def _played(clock: Clock) -> tuple[list[object], list[object]]:
    """Return all replies of the endpoint, without the time, and all events."""
    spec = episode_spec(wall_ms=WALL_MS, calls=20)
    recorder, profile = MemoryRecorder(), HARNESS_MODES.load("native")()
    episode = profile.open_episode(spec, recorder, clock)
    endpoint = SeatEndpoint(
        episode.seats[0],
        recorder=recorder,
        lock=Lock(),
        clock=clock,
        limits=SeatLimits(),
        on_broken=lambda why: None,
    )
    replies: list[object] = []
    for number in range(CALLS):
        answer = endpoint.call("get_account", json.dumps({"id": f"ax{number}"}), "")
        if isinstance(answer, Reply):
            assert answer.remaining[BudgetKind.WALL_MS] >= 0
            replies.append(answer.result)
        else:
            replies.append(answer)
    replies.append(endpoint.submit(Finished("done")))
    episode.close()
    return replies, [*recorder.written()]


UNTOUCHED = _played(StoppedClock())


@bounded
@given(st.lists(st.integers(-(10**9), 0), max_size=40))
def test_a_clock_that_goes_back_changes_nothing(jumps_ms: list[int]) -> None:
    assert _played(JumpingClock(jumps_ms)) == UNTOUCHED


@bounded
@given(st.lists(st.integers(-(10**6), 10**6), max_size=40))
def test_a_seat_whose_time_is_over_gets_no_time_again(jumps_ms: list[int]) -> None:
    replies, written = _played(JumpingClock(jumps_ms))
    ended = [reply for reply in replies if isinstance(reply, Refusal)]
    first = replies.index(ended[0]) if ended else len(replies)
    assert replies[:first] == UNTOUCHED[0][:first]
    assert all(reply == Refusal(RefusalKind.ENDED) for reply in replies[first:-1])
    ends = [event for event in written if isinstance(event, dict) and event["kind"] == "seat_ended"]
    assert len(ends) == 1
