"""One attempt at one task, as the service hosts it: a world, its seats, and the record of both."""

from __future__ import annotations

from fumehood.core.conversation import Conversation
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.events import CallMade, EpisodeClosed, EpisodeOpened, Event, Recorder
from fumehood.core.seat import Seat
from fumehood.core.tools import World


class FireCounts:
    """A recorder that counts fault deliveries and passes everything on."""

    def __init__(self, recorder: Recorder, rules: int) -> None:
        self._recorder = recorder
        self.deliveries = [0] * rules

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Count what struck a call, then pass the event on."""
        if isinstance(event, CallMade):
            for strike in event.result.story:
                self.deliveries[strike.rule] += 1
        self._recorder.record(event, duration_ns)


class Episode:
    """Knows nothing about sockets, boxes or scores."""

    def __init__(
        self,
        spec: EpisodeSpec,
        world: World,
        seats: tuple[Seat, ...],
        recorder: FireCounts,
        conversation: Conversation | None = None,
    ) -> None:
        """Open the episode, and the conversation of its seats where they have one."""
        self.spec = spec
        self.world = world
        self.seats = seats
        self.conversation = conversation
        self._recorder = recorder
        recorder.record(EpisodeOpened(spec))
        if conversation is not None:
            conversation.begin()

    @property
    def ended(self) -> bool:
        """True when every seat's work has ended."""
        return all(seat.end is not None for seat in self.seats)

    def close(self) -> None:
        """Write down how the world stands and which planned faults it met. Call once, last."""
        # Not copied: nobody calls a tool of this world any more.
        self._recorder.record(EpisodeClosed(self.world.state, tuple(self._recorder.deliveries)))
