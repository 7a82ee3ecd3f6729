"""A seat gets back only the time in which it did nothing but wait."""

from __future__ import annotations

import time

from fumehood.gateway.waiting import Activity, WaitCredit


class Seat:
    """A seat whose activity tests set."""

    def __init__(self) -> None:
        self.activity = Activity(0, 0)
        self.granted_ms = 0
        self.credit = WaitCredit(lambda: self.activity, self.grant)

    def grant(self, granted_ms: int) -> None:
        self.granted_ms += granted_ms


def test_a_wait_is_credited() -> None:
    seat = Seat()
    seat.credit.wait(seat.credit.begin(), 0, 100)
    assert seat.granted_ms == 100


def test_parallel_waits_are_credited_once() -> None:
    seat = Seat()
    beginning = seat.credit.begin()
    seat.credit.wait(beginning, 0, 100)
    seat.credit.wait(beginning, 50, 120)
    assert seat.granted_ms == 120


def test_a_tool_call_during_a_request_ends_its_credit() -> None:
    seat = Seat()
    beginning = seat.credit.begin()
    seat.credit.wait(beginning, 0, 100)
    seat.activity = Activity(1, 0)
    seat.credit.wait(beginning, 100, 200)
    seat.credit.wait(seat.credit.begin(), 200, 230)
    assert seat.granted_ms == 130


def test_a_running_tool_call_prevents_the_credit() -> None:
    seat = Seat()
    seat.activity = Activity(1, 1)
    seat.credit.wait(seat.credit.begin(), 0, 100)
    assert seat.granted_ms == 0


def test_time_in_which_another_request_is_answered_is_not_credited() -> None:
    seat = Seat()
    beginning = seat.credit.begin()
    now_ms = time.monotonic_ns() // 1_000_000
    seat.credit.attempt("other", now_ms - 500)
    seat.credit.wait(beginning, now_ms - 600, now_ms - 100)
    assert seat.granted_ms == 100, "until the attempt began"
    seat.credit.ended("other")
    assert seat.granted_ms == 100


def test_a_failed_attempt_of_another_request_is_a_wait() -> None:
    seat = Seat()
    beginning = seat.credit.begin()
    seat.credit.attempt("other", 200)
    seat.credit.wait(beginning, 0, 1000)
    assert seat.granted_ms == 200
    seat.credit.failed("other")
    assert seat.granted_ms == 1000
