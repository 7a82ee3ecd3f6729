"""Work ends once: the first end counts, and nothing is recorded after it."""

from __future__ import annotations

from fumehood.core.clock import StoppedClock
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished, GaveUp
from fumehood.harness_modes.registry import HARNESS_MODES
from tests.parts.specs import episode_spec


def test_only_the_first_end_of_a_seat_counts() -> None:
    recorder = MemoryRecorder()
    episode = HARNESS_MODES.load("native")().open_episode(episode_spec(), recorder, StoppedClock())
    (seat,) = episode.seats
    assert seat.finish(Finished("first")) is True
    assert seat.finish(Finished("second")) is False
    assert seat.finish(GaveUp("third"), ends_all=True) is False
    episode.close()
    ends = [event.to_json() for event in recorder.events if event.to_json()["kind"] == "seat_ended"]
    assert [end["end"] for end in ends] == [{"outcome": "finished", "answer": "first"}]
