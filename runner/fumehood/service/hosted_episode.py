"""One open episode with the sockets of its seats."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from fumehood.core.clock import Clock
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.trace import ModelExchange
from fumehood.monitors.review import Reviewer
from fumehood.service.message_limits import MessageLimits
from fumehood.service.open_episode import OpenEpisode
from fumehood.service.seat_endpoint import SeatEndpoint
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.ports import EpisodeMessage, Opened, SeatSockets, TimeGranted
from fumehood.wire.tool_server import ToolServer, ToolServerLimits

if TYPE_CHECKING:
    # The HTTP libraries take long to import, so only a service with HTTP sockets imports them.
    from fumehood.service.http_sockets import HttpSockets
    from fumehood.wire.http.listener import HttpListener

SOCKET_NAME = "grpc.sock"


class HostedEpisode:
    """One open episode with its sockets. Thread-safe."""

    def __init__(
        self,
        spec: EpisodeSpec,
        directory: Path,
        clock: Clock,
        limits: MessageLimits,
        *,
        http: HttpSockets | None = None,
        exchanges: Sequence[ModelExchange] = (),
        reviewer: Reviewer | None = None,
        is_held: bool = False,
    ) -> None:
        """Build the world and listen on the sockets of all seats.

        Args:
            spec: the episode.
            directory: for the sockets; created if missing.
            clock: measures wall time, from now on.
            limits: limits of an agent's messages and connections.
            http: opens an HTTP socket for each seat; None for no HTTP.
            exchanges: recorded model requests with their responses, if models are replayed.
            reviewer: asks the monitors that the specification names; None if it names none.
            is_held: messages of agents wait until :meth:`begin`.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: a socket cannot be created.
        """
        check_seats(spec)
        self._directory = directory
        self._http = http
        self._exchanges = exchanges
        self._trace = TraceStream(limit_bytes=limits.seat.trace_bytes, on_full=self._end_large)
        self._trace_bytes_max = limits.seat.trace_bytes
        self._tool_servers: dict[str, ToolServer] = {}
        self._http_listeners: dict[str, HttpListener] = {}
        """Both by seat."""
        with input_errors_as_spec_errors():
            self._episode = OpenEpisode(
                spec,
                self._trace,
                clock,
                limits.seat,
                on_broken=self._trace.close,
                on_flood=self._close_seat_soon,
                reviewer=reviewer,
                on_granted=lambda ms: self._trace.post(TimeGranted(spec.seats[0].name, ms)),
                is_held=is_held,
            )
        try:
            # Independent of the umask: other users must not reach the sockets by guessing names.
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._sockets = tuple(
                self._listen(endpoint, limits.server) for endpoint in self._episode.endpoints
            )
        except (OSError, RuntimeError) as error:
            self.close(timed_out=False)
            raise InfraError(f"cannot create a socket in {directory}: {error}") from None

    def messages(self) -> Iterator[EpisodeMessage]:
        """Yield the sockets, then the messages until the episode is closed."""
        yield Opened(self._sockets)
        yield from self._trace.stream()

    def begin(self) -> None:
        """Let the messages of agents through, if the episode was held."""
        self._episode.begin()

    def finish_replies(self, timeout_s: float) -> None:
        """Let the servers of each seat send the replies in progress, each for ``timeout_s`` at
        most."""
        for listener in self._http_listeners.values():
            listener.finish_replies(timeout_s)
        for server in self._tool_servers.values():
            server.stop(timeout_s)

    def close(self, *, timed_out: bool) -> None:
        """End all work, record the final state and remove the sockets. Idempotent."""
        if not self._episode.close(timed_out=timed_out):
            return
        self._trace.close()
        for server in self._tool_servers.values():
            server.stop()
        for listener in self._http_listeners.values():
            listener.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _end_large(self, seat: str) -> None:
        detail = f"it caused a trace of more than {self._trace_bytes_max} bytes"
        for endpoint in self._episode.endpoints:
            if endpoint.name == seat:
                self._close_seat_soon(endpoint, detail)

    def _close_seat_soon(self, endpoint: SeatEndpoint, detail: str) -> None:
        # A thread of the seat's own server, or of the stream of its trace, calls this.
        Thread(target=self._close_seat, args=(endpoint, detail), daemon=True).start()

    def _close_seat(self, endpoint: SeatEndpoint, detail: str) -> None:
        self._tool_servers[endpoint.name].stop()
        if endpoint.name in self._http_listeners:
            self._http_listeners[endpoint.name].stop()
        endpoint.end_flood(detail)

    def _listen(self, endpoint: SeatEndpoint, limits: ToolServerLimits) -> SeatSockets:
        folder = self._directory / endpoint.name
        folder.mkdir()
        # Independent of the umask: a box sees this folder, and runs as another user.
        folder.chmod(0o755)
        path = folder / SOCKET_NAME
        self._tool_servers[endpoint.name] = ToolServer(endpoint, str(path), limits)
        # Connecting needs write permission. Other users cannot reach the socket: only this user
        # may enter the folder above, and only the box of this seat sees this one.
        path.chmod(0o666)
        if self._http is not None:
            self._http_listeners[endpoint.name] = self._http.open(
                endpoint, folder, self._trace, self._exchanges
            )
        return SeatSockets(endpoint.name, str(folder))


@contextmanager
def input_errors_as_spec_errors() -> Iterator[None]:
    """Report an error of the user's input as one of the specification."""
    try:
        yield
    except SpecError:
        raise
    except InputError as error:
        raise SpecError("harness_mode or world", str(error)) from None


def check_seats(spec: EpisodeSpec) -> None:
    """Check the names of the seats, which become names of folders.

    Raises:
        SpecError: a name is unusable, or two seats have the same name.
    """
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
