"""Opens and closes episodes; knows which are open."""

from __future__ import annotations

import resource
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from fumehood.core.clock import Clock
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InputError, SpecError
from fumehood.core.trace import ModelExchange
from fumehood.service.arguments import SeatLimits
from fumehood.service.hosted_episode import HostedEpisode
from fumehood.service.inline import play_inline
from fumehood.version import __version__
from fumehood.wire.ports import InlineAgent, PlayedInline, ServiceHealth
from fumehood.wire.tool_server import ToolServerLimits

if TYPE_CHECKING:
    from fumehood.service.http_doors import HttpDoors


class Host:
    """All open episodes of one service process; implements the wire's ``HostPort``."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        seat_limits: SeatLimits,
        server_limits: ToolServerLimits,
        doors: HttpDoors | None = None,
        *,
        inline: bool = False,
    ) -> None:
        """Host nothing yet.

        Args:
            directory: where sockets are made; absolute, closed to everybody else, short enough for them.
            clock: measures wall time.
            seat_limits: of what an agent's messages may hold.
            server_limits: of what an agent's connection may do.
            doors: open a second socket a seat; None for none.
            inline: play built-in agents here, and open no episode for a box. An inline service holds the
                moves of oracles, which come from the gold, so it must not serve an untrusted agent.
        """
        self._inline = inline
        self._doors = doors
        self._directory = directory
        self._clock = clock
        self._seat_limits = seat_limits
        self._server_limits = server_limits
        self._open: dict[str, HostedEpisode] = {}
        self._lock = Lock()
        self._closed = 0

    def open_episode(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = ()
    ) -> HostedEpisode:
        """Open an episode; its sockets are listening.

        Args:
            spec: the episode.
            exchanges: what models answered before, where they are replayed.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: a socket cannot be made.
        """
        if self._inline:
            raise SpecError(
                "service", "plays built-in agents inline and opens no episode for a box"
            )
        _check_seats(spec)
        with self._lock:
            if spec.episode_id in self._open:
                raise SpecError("episode_id", f"{spec.episode_id!r} is open already")
            # A box may see this name: it must not tell how many episodes there are.
            hosted = self._host(spec, self._directory / secrets.token_hex(4), exchanges)
            self._open[spec.episode_id] = hosted
        return hosted

    def play_inline(self, spec: EpisodeSpec, agents: Sequence[InlineAgent]) -> PlayedInline:
        """Play one whole episode with built-in agents in this process.

        Args:
            spec: the episode.
            agents: one per seat.

        Raises:
            SpecError: the specification cannot be hosted.
        """
        if not self._inline:
            raise SpecError("service", "opens episodes for boxes and plays no agent inline")
        _check_seats(spec)
        try:
            with _naming_what_is_missing():
                return play_inline(spec, agents, self._clock, self._seat_limits)
        finally:
            self._count_closed()

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; False when no such episode was open."""
        hosted = self._open.get(episode_id)
        return hosted is not None and self._close(hosted, timed_out=timed_out)

    def close(self) -> None:
        """Break off every open episode: none gets a seal, because none has come to its end."""
        for hosted in list(self._open.values()):
            hosted.abandon()
            self._close(hosted)

    def health(self) -> ServiceHealth:
        """Return how the service is."""
        return ServiceHealth(len(self._open), self._closed, _resident_bytes(), __version__)

    def _host(
        self, spec: EpisodeSpec, directory: Path, exchanges: Sequence[ModelExchange]
    ) -> HostedEpisode:
        with _naming_what_is_missing():
            return HostedEpisode(
                spec,
                directory,
                self._clock,
                self._seat_limits,
                self._server_limits,
                self._close,
                self._doors,
                exchanges,
            )

    def _count_closed(self) -> None:
        with self._lock:
            self._closed += 1

    def _close(self, hosted: HostedEpisode, *, timed_out: bool = False) -> bool:
        with self._lock:
            # Another episode may have been opened under the same name since.
            if self._open.get(hosted.episode_id) is not hosted:
                return False
            del self._open[hosted.episode_id]
        self._count_closed()
        hosted.close(timed_out=timed_out)
        return True


@contextmanager
def _naming_what_is_missing() -> Iterator[None]:
    try:
        yield
    except SpecError:
        raise
    except InputError as error:
        raise SpecError("harness_mode or world", str(error)) from None


def _check_seats(spec: EpisodeSpec) -> None:
    names = [seat.name for seat in spec.seats]
    if not names or len(set(names)) != len(names):
        raise SpecError("seats", "must be at least one, with names of their own")
    for name in names:
        if not (
            name.replace("_", "a").isalnum()
            and name.isascii()
            and name == name.lower()
            and len(name) <= 32
        ):
            raise SpecError(
                "seats", f"{name!r} is not a name of lower-case letters, digits and '_'"
            )


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
