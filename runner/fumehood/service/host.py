"""Opens and closes the episodes of one service process."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from fumehood.core.clock import Clock
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.trace import ModelExchange
from fumehood.monitors.host import MonitorHost
from fumehood.service.forked_episode import EpisodeProcesses, ForkedEpisode
from fumehood.service.hosted_episode import check_seats, input_errors_as_spec_errors
from fumehood.service.inline import play_inline
from fumehood.service.message_limits import MessageLimits
from fumehood.version import __version__
from fumehood.wire.ports import InlineAgent, PlayedInline, ServiceHealth


class Host:
    """All open episodes of one service process; implements the wire's ``HostPort``."""

    def __init__(
        self,
        clock: Clock,
        limits: MessageLimits,
        processes: EpisodeProcesses | None,
        monitors: MonitorHost | None = None,
    ) -> None:
        """Create a host without episodes.

        Args:
            clock: measures wall time.
            limits: limits of agents' messages and connections.
            processes: give each episode its own process. None to play built-in agents in this
                process, and to open no episode for a box: such a service holds the moves of
                oracles, which come from the gold, so it must not serve an untrusted agent.
            monitors: the monitors of built-in agents that this process plays; None for none.
        """
        self._monitors = monitors
        self._clock = clock
        self._limits = limits
        self._processes = processes
        self._open: dict[str, ForkedEpisode | None] = {}
        """By episode ID; None while an episode is being opened."""
        self._lock = Lock()
        self._closed = 0

    def open_episode(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = (), *, is_held: bool = False
    ) -> ForkedEpisode:
        """Open an episode; its sockets are listening when this method returns.

        If it is held, messages of agents wait until :meth:`begin_episode`.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: a socket or a process cannot be created.
        """
        if self._processes is None:
            raise SpecError(
                "service", "plays built-in agents inline and opens no episode for a box"
            )
        check_seats(spec)
        with self._reserved(spec.episode_id):
            with input_errors_as_spec_errors():
                opened = self._processes.open(spec, exchanges, self._close, is_held=is_held)
            with self._lock:
                self._open[spec.episode_id] = opened
        return opened

    def play_inline(self, spec: EpisodeSpec, agents: Sequence[InlineAgent]) -> PlayedInline:
        """Play one whole episode with built-in agents, one per seat, in this process.

        Raises:
            SpecError: the specification cannot be hosted.
        """
        if self._processes is not None:
            raise SpecError("service", "opens episodes for boxes and plays no agent inline")
        check_seats(spec)
        reviewer = self._monitors.reviewer(spec.monitors) if self._monitors else None
        try:
            with input_errors_as_spec_errors():
                return play_inline(spec, agents, self._clock, self._limits.seat, reviewer)
        finally:
            if reviewer is not None:
                reviewer.release()
            self._count_closed()

    def begin_episode(self, episode_id: str) -> None:
        """Begin a held episode; has no effect on any other."""
        opened = self._open.get(episode_id)
        if opened is not None:
            opened.begin()

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; return False if no such episode was open."""
        opened = self._open.get(episode_id)
        return opened is not None and self._close(opened, timed_out=timed_out)

    def close(self) -> None:
        """Abandon every open episode; their traces get no end record."""
        for opened in list(self._open.values()):
            if opened is not None:
                opened.abandon()
                self._close(opened)

    def health(self) -> ServiceHealth:
        """Return the state of the service."""
        return ServiceHealth(len(self._open), self._closed, _resident_bytes(), __version__)

    @contextmanager
    def _reserved(self, episode_id: str) -> Iterator[None]:
        """Keep an ID for an episode that is being opened."""
        with self._lock:
            if episode_id in self._open:
                raise SpecError("episode_id", f"an episode {episode_id!r} is already open")
            self._open[episode_id] = None
        try:
            yield
        except BaseException:
            with self._lock:
                del self._open[episode_id]
            raise

    def _count_closed(self) -> None:
        with self._lock:
            self._closed += 1

    def _close(self, opened: ForkedEpisode, *, timed_out: bool = False) -> bool:
        with self._lock:
            # Another episode may have been opened with the same ID since.
            if self._open.get(opened.episode_id) is not opened:
                return False
            del self._open[opened.episode_id]
        self._count_closed()
        opened.close(timed_out=timed_out)
        return True


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
