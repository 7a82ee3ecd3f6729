"""One episode on a lane: its world and its desk, without a socket of its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from fumehood.core.clock import Clock
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.harness_modes.registry import PROFILES
from fumehood.service.arguments import SeatLimits
from fumehood.service.scroll import Scroll
from fumehood.service.seat_endpoint import SeatEndpoint
from fumehood.wire.ports import Played, SpecRejected


class LaneEpisode:
    """Implements the wire's ``LaneEpisodePort``. For one thread."""

    def __init__(
        self, spec: EpisodeSpec, clock: Clock, limits: SeatLimits, on_over: Callable[[], object]
    ) -> None:
        """Build world and door.

        Args:
            spec: the episode.
            clock: measures wall time, from now on.
            limits: of what an agent's messages may hold.
            on_over: told when the episode has ended.

        Raises:
            InputError: the specification cannot be hosted.
        """
        if len(spec.seats) != 1:
            raise SpecError("seats", f"a lane has one seat, not {len(spec.seats)}")
        self._on_over = on_over
        self._scroll = Scroll()
        self._broken: SpecRejected | None = None
        profile = PROFILES.load(spec.profile)()
        self._episode = profile.open_episode(spec, self._scroll, clock)
        self.seat = SeatEndpoint(
            self._episode.seats[0],
            profile=profile,
            recorder=self._scroll,
            lock=Lock(),
            clock=clock,
            wall_ms=spec.seats[0].budget.wall_ms,
            limits=limits,
            on_broken=self._break_off,
        )

    def end(self, *, agent_gone: bool, timed_out: bool) -> Played:
        """End the work, write down how the world stands, and return the sealed trace."""
        self._on_over()
        self.seat.close(timed_out=timed_out)
        if self._broken is not None:
            return Played((), self._broken, agent_gone)
        self._episode.close()
        return Played(self._scroll.sealed(), None, agent_gone)

    def _break_off(self, why: SpecRejected) -> None:
        self._broken = why
