"""Messages that are slow to parse leave time to the other threads of a service."""

from __future__ import annotations

import time
from threading import Event, Thread

from fumehood.supervised.slow_messages import SHORT_S, SMALL_BYTES, parsing


def test_a_small_message_is_parsed_while_a_large_one_is() -> None:
    with parsing(SMALL_BYTES + 1), parsing(SMALL_BYTES):
        pass


def test_one_large_message_is_parsed_at_a_time() -> None:
    parsed = Event()

    def parse() -> None:
        with parsing(SMALL_BYTES + 1):
            parsed.set()

    thread = Thread(target=parse)
    with parsing(SMALL_BYTES + 1):
        thread.start()
        assert not parsed.wait(0.05)
    assert parsed.wait(60)
    thread.join()


def test_a_pause_follows_a_message_that_was_slow_to_parse() -> None:
    with parsing(SMALL_BYTES + 1):
        began_s = time.thread_time()
        while time.thread_time() - began_s < 2 * SHORT_S:
            pass
        ended_s = time.monotonic()
    assert time.monotonic() - ended_s >= 2 * SHORT_S


def test_a_message_that_fails_leaves_its_turn_to_the_next() -> None:
    for _ in range(2):
        try:
            with parsing(SMALL_BYTES + 1):
                raise ValueError("not a message")
        except ValueError:
            pass
