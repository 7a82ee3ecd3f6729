"""Pauses of a box, and programs that are started in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait

from fumehood.engines.pausing import Pausing


def test_no_program_starts_while_a_box_is_paused_for_a_moment() -> None:
    seen: list[str] = []
    pausing = Pausing(lambda: seen.append("paused"), lambda: seen.append("continued"))

    def start() -> None:
        with pausing.starting():
            seen.append("started")

    with ThreadPoolExecutor(1) as thread:
        with pausing.meanwhile():
            starting = thread.submit(start)
            assert not wait([starting], timeout=0.1).done
        starting.result()
    assert seen == ["paused", "continued", "started"]
