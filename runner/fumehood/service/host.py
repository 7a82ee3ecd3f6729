"""Opens and closes the episodes of one service process."""

from __future__ import annotations

import resource
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from fumehood.core.clock import Clock
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.trace import ModelExchange
from fumehood.service.inline import play_inline
from fumehood.service.open_episode import OpenEpisode
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from fumehood.service.trace_stream import TraceStream
from fumehood.version import __version__
from fumehood.wire.ports import (
    EpisodeMessage,
    InlineAgent,
    Opened,
    PlayedInline,
    SeatSockets,
    ServiceHealth,
)
from fumehood.wire.tool_server import ToolServer, ToolServerLimits

if TYPE_CHECKING:
    # The HTTP libraries take long to import, so only a service with HTTP sockets imports them.
    from fumehood.service.http_sockets import HttpSockets

SOCKET_NAME = "grpc.sock"


class _Server(Protocol):
    def stop(self) -> None: ...


class HostedEpisode:
    """One open episode with its sockets; implements the wire's ``EpisodePort``. Thread-safe."""

    def __init__(
        self,
        spec: EpisodeSpec,
        directory: Path,
        clock: Clock,
        seat_limits: SeatLimits,
        server_limits: ToolServerLimits,
        on_over: Callable[[HostedEpisode], object],
        http: HttpSockets | None = None,
        exchanges: Sequence[ModelExchange] = (),
    ) -> None:
        """Build the world and listen on the sockets of all seats.

        Args:
            spec: the episode.
            directory: for the sockets; must not exist.
            clock: measures wall time, from now on.
            seat_limits: limits of an agent's messages.
            server_limits: limits of an agent's connections.
            on_over: called when the stream of messages has ended.
            http: opens an HTTP socket for each seat; None for no HTTP.
            exchanges: recorded model requests with their responses, if models are replayed.

        Raises:
            InputError: the specification cannot be hosted.
            InfraError: a socket cannot be created.
        """
        self.episode_id = spec.episode_id
        self._directory = directory
        self._on_over = on_over
        self._http = http
        self._exchanges = exchanges
        self._trace = TraceStream()
        self._servers: list[_Server] = []
        self._episode = OpenEpisode(
            spec, self._trace, clock, seat_limits, on_broken=self._trace.close
        )
        try:
            self._sockets = tuple(
                self._listen(endpoint, server_limits) for endpoint in self._episode.endpoints
            )
        except (OSError, RuntimeError) as error:
            self.close(timed_out=False)
            raise InfraError(f"cannot create a socket in {directory}: {error}") from None

    def messages(self) -> Iterator[EpisodeMessage]:
        """Yield the sockets, then the messages until the episode is closed.

        The episode ends with them.
        """
        try:
            yield Opened(self._sockets)
            yield from self._trace.stream()
        finally:
            self._on_over(self)

    def abandon(self) -> None:
        """End ``messages`` without an end record."""
        self._trace.abandon()

    def close(self, *, timed_out: bool) -> None:
        """End all work, record the final state and remove the sockets. Idempotent."""
        if not self._episode.close(timed_out=timed_out):
            return
        self._trace.close()
        for server in self._servers:
            server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _listen(self, endpoint: SeatEndpoint, limits: ToolServerLimits) -> SeatSockets:
        folder = self._directory / endpoint.name
        folder.mkdir(parents=True)
        # Independent of the umask: a box sees this folder, and runs as another user.
        folder.chmod(0o755)
        path = folder / SOCKET_NAME
        self._servers.append(ToolServer(endpoint, str(path), limits))
        # Connecting needs write permission. Other users cannot reach the socket: only this process
        # may enter the folders above, and only the box of this seat sees this one.
        path.chmod(0o666)
        if self._http is not None:
            self._servers.append(self._http.open(endpoint, folder, self._trace, self._exchanges))
        return SeatSockets(endpoint.name, str(folder))


class Host:
    """All open episodes of one service process; implements the wire's ``HostPort``."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        seat_limits: SeatLimits,
        server_limits: ToolServerLimits,
        http: HttpSockets | None = None,
        *,
        inline: bool = False,
    ) -> None:
        """Create a host without episodes.

        Args:
            directory: for the sockets; absolute, closed to other users, and short enough for socket
                paths.
            clock: measures wall time.
            seat_limits: limits of an agent's messages.
            server_limits: limits of an agent's connections.
            http: opens an HTTP socket for each seat; None for no HTTP.
            inline: play built-in agents here, and open no episode for a box. An inline service
                holds the moves of oracles, which come from the gold, so it must not serve an
                untrusted agent.
        """
        self._inline = inline
        self._http = http
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
        """Open an episode; its sockets are listening when this method returns.

        Args:
            spec: the episode.
            exchanges: recorded model requests with their responses, if models are replayed.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: a socket cannot be created.
        """
        if self._inline:
            raise SpecError(
                "service", "plays built-in agents inline and opens no episode for a box"
            )
        _check_seats(spec)
        with self._lock:
            if spec.episode_id in self._open:
                raise SpecError("episode_id", f"an episode {spec.episode_id!r} is already open")
            # A box may see this name, so it must not reveal how many episodes there are.
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
            with _input_errors_as_spec_errors():
                return play_inline(spec, agents, self._clock, self._seat_limits)
        finally:
            self._count_closed()

    def close_episode(self, episode_id: str, timed_out: bool) -> bool:
        """Close an episode; return False if no such episode was open."""
        hosted = self._open.get(episode_id)
        return hosted is not None and self._close(hosted, timed_out=timed_out)

    def close(self) -> None:
        """Abandon every open episode; their traces get no end record."""
        for hosted in list(self._open.values()):
            hosted.abandon()
            self._close(hosted)

    def health(self) -> ServiceHealth:
        """Return the state of the service."""
        return ServiceHealth(len(self._open), self._closed, _resident_bytes(), __version__)

    def _host(
        self, spec: EpisodeSpec, directory: Path, exchanges: Sequence[ModelExchange]
    ) -> HostedEpisode:
        with _input_errors_as_spec_errors():
            return HostedEpisode(
                spec,
                directory,
                self._clock,
                self._seat_limits,
                self._server_limits,
                self._close,
                self._http,
                exchanges,
            )

    def _count_closed(self) -> None:
        with self._lock:
            self._closed += 1

    def _close(self, hosted: HostedEpisode, *, timed_out: bool = False) -> bool:
        with self._lock:
            # Another episode may have been opened with the same ID since.
            if self._open.get(hosted.episode_id) is not hosted:
                return False
            del self._open[hosted.episode_id]
        self._count_closed()
        hosted.close(timed_out=timed_out)
        return True


@contextmanager
def _input_errors_as_spec_errors() -> Iterator[None]:
    try:
        yield
    except SpecError:
        raise
    except InputError as error:
        raise SpecError("harness_mode or world", str(error)) from None


def _check_seats(spec: EpisodeSpec) -> None:
    names = [seat.name for seat in spec.seats]
    if not names or len(set(names)) != len(names):
        raise SpecError(
            "seats", f"at least one seat is required, and seat names must be unique; got {names}"
        )
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
