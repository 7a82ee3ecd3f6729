"""One open episode: its world, its desks, its sockets, and how all of it goes away again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fumehood.core.clock import Clock
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.core.trace import ModelExchange
from fumehood.service.arguments import SeatLimits
from fumehood.service.open_episode import OpenEpisode
from fumehood.service.seat_endpoint import SeatEndpoint
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.ports import EpisodeMessage, Opened, SeatSockets
from fumehood.wire.tool_server import ToolServer, ToolServerLimits

if TYPE_CHECKING:
    # At run time only a service that opens second sockets pays for the libraries behind them.
    from fumehood.service.http_doors import HttpDoors

SOCKET_NAME = "grpc.sock"


class _Server(Protocol):
    def stop(self) -> None: ...


class HostedEpisode:
    """Implements the wire's ``EpisodePort``. Safe to use from several threads."""

    def __init__(
        self,
        spec: EpisodeSpec,
        directory: Path,
        clock: Clock,
        seat_limits: SeatLimits,
        server_limits: ToolServerLimits,
        on_over: Callable[[HostedEpisode], object],
        doors: HttpDoors | None = None,
        exchanges: Sequence[ModelExchange] = (),
    ) -> None:
        """Build world and doors, and listen.

        Args:
            spec: the episode.
            directory: for its sockets; must not exist.
            clock: measures wall time, from now on.
            seat_limits: of what an agent's messages may hold.
            server_limits: of what an agent's connection may do.
            on_over: told when nobody listens to the episode any more.
            doors: open a second socket a seat; None for none.
            exchanges: what models answered before, where they are replayed.

        Raises:
            InputError: the specification cannot be hosted.
            InfraError: a socket cannot be made.
        """
        self.episode_id = spec.episode_id
        self._directory = directory
        self._on_over = on_over
        self._doors = doors
        self._exchanges = exchanges
        self._outbox = TraceStream()
        self._servers: list[_Server] = []
        self._episode = OpenEpisode(
            spec, self._outbox, clock, seat_limits, on_broken=self._outbox.close
        )
        try:
            self._sockets = tuple(
                self._listen(desk, server_limits) for desk in self._episode.endpoints
            )
        except (OSError, RuntimeError) as error:
            self.close(timed_out=False)
            raise InfraError(f"no socket can be made in {directory}: {error}") from None

    def messages(self) -> Iterator[EpisodeMessage]:
        """Yield the sockets, then what happens until the episode is closed; the end of this is its end."""
        try:
            yield Opened(self._sockets)
            yield from self._outbox.stream()
        finally:
            self._on_over(self)

    def abandon(self) -> None:
        """Make ``messages`` end where it is, without a seal."""
        self._outbox.abandon()

    def close(self, *, timed_out: bool) -> None:
        """End all work, write down how the world stands, remove the sockets; once."""
        if not self._episode.close(timed_out=timed_out):
            return
        self._outbox.close()
        for server in self._servers:
            server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _listen(self, desk: SeatEndpoint, limits: ToolServerLimits) -> SeatSockets:
        room = self._directory / desk.name
        room.mkdir(parents=True)
        # Whatever the process's umask: a box sees this folder, and its user is not ours.
        room.chmod(0o755)
        path = room / SOCKET_NAME
        self._servers.append(ToolServer(desk, str(path), limits))
        # Connecting needs write permission. Nobody else can reach the socket: the folders above are closed
        # to all but us, and only this seat's box is shown this one.
        path.chmod(0o666)
        if self._doors is not None:
            self._servers.append(self._doors.open(desk, room, self._outbox, self._exchanges))
        return SeatSockets(desk.name, str(room))
