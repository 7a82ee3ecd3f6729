"""Opens and closes episodes, each with its world, its doors and its sockets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from runner.core.clock import Clock
from runner.core.episode import Episode
from runner.core.episode_spec import EpisodeSpec
from runner.core.errors import InputError, SpecError
from runner.profiles.table import PROFILES
from runner.service.arguments import SeatLimits
from runner.service.outbox import Outbox
from runner.service.seat_desk import SeatDesk
from runner.version import __version__
from runner.wire.ports import EpisodeMessage, Opened, SeatSockets, ServiceHealth, Unhostable
from runner.wire.tool_server import ToolServer, ToolServerLimits

SOCKET_NAME = "grpc.sock"


class HostedEpisode:
    """One open episode: what it takes to close it again."""

    def __init__(
        self,
        spec: EpisodeSpec,
        directory: Path,
        clock: Clock,
        seat_limits: SeatLimits,
        limits: ToolServerLimits,
    ) -> None:
        """Build world and doors, and listen.

        Raises:
            SpecError: the specification cannot be hosted.
        """
        self.outbox = Outbox()
        self._directory = directory
        self._lock = Lock()
        self._closed = False
        profile = PROFILES.load(spec.profile)()
        self._episode: Episode = profile.open_episode(spec, self.outbox, clock)
        self._desks = [
            SeatDesk(
                seat,
                profile=profile,
                recorder=self.outbox,
                lock=self._lock,
                clock=clock,
                wall_ms=given.budget.wall_ms,
                limits=seat_limits,
                on_broken=self.outbox.close,
            )
            for seat, given in zip(self._episode.seats, spec.seats, strict=True)
        ]
        self.sockets = tuple(_make_room(directory, seat.name) for seat in spec.seats)
        self._servers = [
            ToolServer(desk, f"{room.directory}/{SOCKET_NAME}", limits)
            for desk, room in zip(self._desks, self.sockets, strict=True)
        ]
        for room in self.sockets:
            # The agent's user is not ours, and connecting needs write permission. Nobody else can reach the
            # socket: the folders above are closed to all but us, and only this seat's box is shown this one.
            (Path(room.directory) / SOCKET_NAME).chmod(0o666)

    def close(self, *, timed_out: bool) -> None:
        """End all work, write down how the world stands, remove the sockets; once."""
        if timed_out:
            for desk in self._desks:
                desk.time_out()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._episode.close()
        self.outbox.close()
        for server in self._servers:
            server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


class Host:
    """All open episodes of one service process; implements the wire's ``HostPort``."""

    def __init__(
        self, directory: Path, clock: Clock, seat_limits: SeatLimits, server_limits: ToolServerLimits
    ) -> None:
        """Host nothing yet.

        Args:
            directory: where sockets are made; closed to everybody else, path short enough for them.
            clock: measures wall time.
            seat_limits: of what an agent's messages may hold.
            server_limits: of what an agent's connection may do.
        """
        self._directory = directory
        self._clock = clock
        self._seat_limits = seat_limits
        self._server_limits = server_limits
        self._open: dict[str, HostedEpisode] = {}
        self._lock = Lock()
        self._made = 0
        self._closed = 0

    def open_episode(self, spec: EpisodeSpec) -> Iterator[EpisodeMessage]:
        """Open an episode and yield what happens until it is closed."""
        try:
            hosted = self._host(spec)
        except SpecError as error:
            yield Unhostable(error.field, error.reason)
            return
        except InputError as error:
            yield Unhostable("profile or world", str(error))
            return
        try:
            yield Opened(hosted.sockets)
            yield from hosted.outbox.stream()
        finally:
            # Also when the orchestrator has hung up: an episode nobody listens to is over.
            self.close_episode(spec.episode_id, timed_out=False)

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; False when no such episode was open."""
        with self._lock:
            hosted = self._open.pop(episode_id, None)
            self._closed += hosted is not None
        if hosted is None:
            return False
        hosted.close(timed_out=timed_out)
        return True

    def close(self) -> None:
        """Close every open episode."""
        for episode_id in list(self._open):
            self.close_episode(episode_id, timed_out=False)

    def health(self) -> ServiceHealth:
        """Return how the service is."""
        return ServiceHealth(len(self._open), self._closed, _resident_bytes(), __version__)

    def _host(self, spec: EpisodeSpec) -> HostedEpisode:
        _check_seats(spec)
        with self._lock:
            if spec.episode_id in self._open:
                raise SpecError("episode_id", f"{spec.episode_id!r} is open already")
            self._made += 1
            number = self._made
        directory = self._directory / str(number)
        hosted = HostedEpisode(spec, directory, self._clock, self._seat_limits, self._server_limits)
        with self._lock:
            self._open[spec.episode_id] = hosted
        return hosted


def _check_seats(spec: EpisodeSpec) -> None:
    names = [seat.name for seat in spec.seats]
    if not names or len(set(names)) != len(names):
        raise SpecError("seats", "must be at least one, with names of their own")
    for name in names:
        if not (
            name.replace("_", "a").isalnum() and name.isascii() and name == name.lower() and len(name) <= 32
        ):
            raise SpecError("seats", f"{name!r} is not a name of lower-case letters, digits and '_'")


def _make_room(directory: Path, seat: str) -> SeatSockets:
    room = directory / seat
    room.mkdir(parents=True, mode=0o755)
    return SeatSockets(seat, str(room))


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
