"""The boxes of an episode: their exits, outputs and failures belong to the right seat."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

import pytest

from fumehood.core.errors import FumehoodError, InfraError, InputError
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import BoxSpec, Exit, ExitReason
from fumehood.orchestrator import seat_boxes, trace_receiver
from fumehood.orchestrator.episode_time import EpisodeTime
from fumehood.orchestrator.seat_boxes import SeatBox, SeatBoxes
from fumehood.orchestrator.seat_exit import SeatExit
from fumehood.orchestrator.trace_receiver import TraceReceiver
from fumehood.wire.ports import EpisodeMessage, SeatReady, SeatWorkEnded
from tests.unit.orchestrator.boxes import NORMAL, MemoryBox, image, starting

WALL_MS = 60_000
FAILED = Exit(41, ExitReason.EXITED)


class Episode:
    """Boxes by seat, and the messages that their receiver reads."""

    def __init__(
        self,
        boxes: dict[str, MemoryBox | FumehoodError],
        counterparts: frozenset[str] = frozenset(),
        flush_s: float = 0.0,
        in_turn: bool = False,
    ) -> None:
        self._messages: SimpleQueue[EpisodeMessage | None] = SimpleQueue()
        seats = tuple(boxes)
        self.receiver = TraceReceiver(
            iter(self._messages.get, None), seats, in_turn=in_turn, grace_s=0.0, flush_s=flush_s
        )
        self.boxes = SeatBoxes(seat_boxes_of(boxes, counterparts), self.receiver, EpisodeTime(0))
        self.receiver.start()

    def send(self, message: EpisodeMessage) -> None:
        self._messages.put(message)

    def close(self) -> None:
        """End the stream, as the service does when the episode is closed."""
        self._messages.put(None)


def seat_boxes_of(
    boxes: dict[str, MemoryBox | FumehoodError], counterparts: frozenset[str] = frozenset()
) -> dict[str, SeatBox]:
    start = starting(boxes)
    return {
        seat: SeatBox(BoxSpec(image=image(seat), socket_dir=Path("/")), start, seat in counterparts)
        for seat in boxes
    }


def play(episode: Episode, wall_ms: int = WALL_MS) -> SeatBoxes:
    episode.boxes.play(wall_ms)
    episode.close()
    episode.boxes.wait_for_end()
    return episode.boxes


def test_the_exit_and_the_output_of_one_box() -> None:
    boxes = play(Episode({"agent": MemoryBox(FAILED, b"text\n")}))
    assert boxes.exit == FAILED
    assert boxes.output is not None
    assert (boxes.output.stdout, boxes.output.stdout_bytes) == (b"text\n", 5)
    assert (boxes.timed_out, boxes.ended_early, boxes.infra) == (False, None, None)


def test_a_box_that_is_still_running_after_its_wall_time_has_timed_out() -> None:
    boxes = play(Episode({"agent": MemoryBox()}), wall_ms=1)
    assert boxes.timed_out
    assert boxes.exit is None


def test_a_box_has_the_time_granted_to_its_seat_besides_its_wall_time() -> None:
    box = MemoryBox()
    boxes = SeatBoxes(seat_boxes_of({"agent": box}), _Granted(3), EpisodeTime(0))
    boxes.play(1)
    assert box.waits_ms == [1, 3]
    assert boxes.timed_out


class _Granted(TraceReceiver):
    """A receiver of an episode that was granted time and never stops a box."""

    def __init__(self, granted_ms: int) -> None:
        super().__init__(iter(()), ("agent",), in_turn=False)
        self.granted_ms = granted_ms


def test_an_episode_ends_if_no_box_runs_and_no_seat_can_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_receiver, "LOOK_S", 0.001)
    monkeypatch.setattr(seat_boxes, "IDLE_MS_MAX", 1)
    messages = SimpleQueue[EpisodeMessage | None]()
    for message in (SeatReady("a"), SeatWorkEnded("a")):
        messages.put(message)
    receiver = TraceReceiver(iter(messages.get, None), ("a", "b"), in_turn=True, flush_s=30)
    receiver.start()
    ended = seat_boxes_of({"a": MemoryBox(NORMAL), "b": MemoryBox(NORMAL)})
    boxes = SeatBoxes(ended, receiver, EpisodeTime(0))
    boxes.play(WALL_MS)
    assert not receiver.all_work_ended, "the seat b never acts"
    messages.put(None)


def test_the_outputs_of_several_boxes_are_titled_by_seat() -> None:
    episode = Episode(
        {"a": MemoryBox(NORMAL, b"one\n"), "b": MemoryBox(NORMAL, b"three\n")}, flush_s=30
    )
    episode.send(SeatWorkEnded("a"))
    episode.send(SeatWorkEnded("b"))
    boxes = play(episode)
    assert boxes.output is not None
    assert boxes.output.stdout == b"--- seat a ---\none\n--- seat b ---\nthree\n"
    assert boxes.output.stdout_bytes == 10
    assert boxes.exit == NORMAL


@pytest.mark.parametrize(
    ("counterparts", "infra"),
    [
        (frozenset[str](), None),
        (frozenset({"user"}), Infra(InfraKind.COUNTERPART, "seat user: exited, exit status 41")),
    ],
)
def test_a_counterpart_that_breaks_off_before_the_agent_starts_is_an_infrastructure_failure(
    counterparts: frozenset[str], infra: Infra | None
) -> None:
    user = MemoryBox(FAILED, b"user\n")
    episode = Episode({"user": user, "agent": MemoryBox()}, counterparts, in_turn=True)
    episode.send(SeatReady("user"))
    boxes = play(episode)
    assert boxes.ended_early == "user"
    assert boxes.infra == infra
    assert boxes.exit == SeatExit(41, ExitReason.EXITED, "user")
    assert boxes.output is not None
    assert boxes.output.stdout == b"--- seat user ---\nuser\n"


def test_a_counterpart_that_breaks_off_beside_the_agent_may_be_broken_by_it() -> None:
    agent, user = MemoryBox(None, b"agent\n"), MemoryBox(FAILED, b"user\n")
    episode = Episode({"user": user, "agent": agent}, frozenset({"user"}), in_turn=True)
    episode.send(SeatReady("agent"))
    episode.send(SeatReady("user"))
    boxes = play(episode)
    assert (boxes.ended_early, boxes.infra) == ("user", None)
    assert boxes.exit == SeatExit(41, ExitReason.EXITED, "user")
    assert boxes.output is not None
    # The output of the seat that broke off comes last.
    assert boxes.output.stdout == b"--- seat agent ---\nagent\n--- seat user ---\nuser\n"


def test_a_tested_agent_that_breaks_off_is_not_an_infrastructure_failure() -> None:
    boxes = play(Episode({"agent": MemoryBox(FAILED), "user": MemoryBox()}, frozenset({"user"})))
    assert (boxes.ended_early, boxes.infra) == ("agent", None)
    assert boxes.exit == SeatExit(41, ExitReason.EXITED, "agent")


def test_a_counterpart_that_is_stopped_did_not_end_early() -> None:
    episode = Episode(
        {"agent": MemoryBox(NORMAL), "user": MemoryBox()}, frozenset({"user"}), flush_s=30
    )
    episode.send(SeatWorkEnded("agent"))
    episode.send(SeatWorkEnded("user"))
    boxes = play(episode)
    assert (boxes.ended_early, boxes.infra, boxes.exit) == (None, None, NORMAL)


def test_an_engine_that_fails_is_an_infrastructure_failure() -> None:
    boxes = play(Episode({"agent": InfraError("no daemon")}))
    assert boxes.infra == Infra(InfraKind.ENGINE, "no daemon")
    assert (boxes.exit, boxes.output, boxes.timed_out) == (None, None, False)


def test_an_agent_that_cannot_be_started_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no such command"):
        Episode({"agent": InputError("no such command")}).boxes.play(WALL_MS)


def test_one_of_several_agents_that_cannot_be_started_is_an_input_error_at_the_end() -> None:
    episode = Episode({"a": InputError("no such command"), "b": MemoryBox()})
    episode.boxes.play(WALL_MS)
    episode.close()
    with pytest.raises(InputError, match="no such command"):
        episode.boxes.wait_for_end()
