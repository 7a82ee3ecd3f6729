"""A crew works through what is waiting; whatever stops it, what was begun is handed over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.orchestrator.executor import RESULTS_WAITING, EpisodeExecutor


@given(st.integers(1, 8), st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_every_piece_is_done_once(size: int, pieces: int) -> None:
    done = [
        result
        for batch in EpisodeExecutor(size, lambda piece: piece * 2, range(pieces)).batches()
        for result in batch
    ]
    assert sorted(done) == [piece * 2 for piece in range(pieces)]


def test_several_pieces_are_worked_on_at_once() -> None:
    meeting = threading.Barrier(3, timeout=10)
    assert (
        sum(
            len(batch) for batch in EpisodeExecutor(3, lambda _: meeting.wait(), range(6)).batches()
        )
        == 6
    )


def test_what_is_done_by_then_comes_in_one_batch() -> None:
    crew = EpisodeExecutor(1, lambda piece: piece, range(50))
    time.sleep(0.5)
    assert list(crew.batches()) == [list(range(50))]


def test_a_problem_is_raised_after_what_was_done_before_it() -> None:
    def work(piece: int) -> int:
        if piece == 3:
            raise ValueError("three")
        return piece

    crew, done = EpisodeExecutor(1, work, range(9)), list[int]()
    with pytest.raises(ValueError, match="three"):
        done.extend(piece for batch in crew.batches() for piece in batch)
    assert done == [0, 1, 2]
    assert list(crew.rest()) == []


def test_the_rest_is_what_was_begun_and_nothing_more() -> None:
    may_go_on = threading.Event()
    begun = list[int]()

    def work(piece: int) -> int:
        begun.append(piece)
        assert may_go_on.wait(10)
        return piece

    crew = EpisodeExecutor(2, work, range(100))
    while len(begun) < 2:
        time.sleep(0.001)
    threading.Timer(0.1, may_go_on.set).start()
    assert sorted(piece for batch in crew.rest() for piece in batch) == [0, 1]


def test_no_more_is_taken_than_somebody_takes_over() -> None:
    taken = list[int]()

    def endless() -> Iterator[int]:
        number = 0
        while True:
            taken.append(number)
            yield number
            number += 1

    crew = EpisodeExecutor(2, lambda piece: piece, endless())
    time.sleep(0.3)
    assert len(taken) <= RESULTS_WAITING + 2
    assert sum(len(batch) for batch in crew.rest()) == len(taken)


def test_a_source_that_fails_ends_the_work() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise OSError("no more to read")

    with pytest.raises(OSError, match="no more to read"):
        list(EpisodeExecutor(2, lambda piece: piece, source()).batches())
