"""Signals are raised at once, or counted while boxes and folders are held."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from threading import Thread

import pytest

from fumehood.orchestrator.stop_signals import (
    STOP_SIGNALS,
    Stopped,
    deferred_stop_signals,
    exit_status,
    ignore_stop_signals,
    raise_stop_signals,
)


@pytest.fixture(autouse=True)
def _same_handlers() -> Iterator[None]:
    # A shell starts commands in the background with signals ignored, and they stay ignored.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def receive(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_is_raised_at_once(number: int) -> None:
    raise_stop_signals()
    with pytest.raises(Stopped) as stopped:
        receive(number)
    assert stopped.value.number == number
    assert exit_status(stopped.value.number) == 128 + number


def test_deferred_signals_are_counted_and_the_first_is_raised_at_the_end() -> None:
    raise_stop_signals()
    counts = list[int]()

    def work() -> None:
        with deferred_stop_signals() as requests:
            requests.check()
            receive(signal.SIGTERM)
            receive(signal.SIGINT)
            counts.append(requests.count)

    with pytest.raises(Stopped) as stopped:
        work()
    assert counts == [2]
    assert stopped.value.number == signal.SIGTERM
    with pytest.raises(Stopped):
        receive(signal.SIGINT)


def test_another_error_is_not_replaced_by_a_signal() -> None:
    def work() -> None:
        with deferred_stop_signals():
            receive(signal.SIGTERM)
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        work()


def test_a_signal_that_this_process_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise_stop_signals()
    with deferred_stop_signals() as requests:
        receive(signal.SIGHUP)
        assert requests.count == 0
    receive(signal.SIGHUP)


def test_signals_are_ignored_when_the_process_ends() -> None:
    raise_stop_signals()
    ignore_stop_signals()
    for number in STOP_SIGNALS:
        receive(number)


def test_another_thread_defers_nothing() -> None:
    counts = list[int]()

    def work() -> None:
        with deferred_stop_signals() as requests:
            counts.append(requests.count)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert counts == [0]
