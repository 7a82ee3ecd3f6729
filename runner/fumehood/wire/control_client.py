"""The orchestrator's side of the control socket."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import grpc

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.trace import ModelExchange
from fumehood.wire.control_server import SPEC_BYTES
from fumehood.wire.convert import (
    inline_agent_to_pb,
    message_from_pb,
    played_from_pb,
    spec_to_pb,
)
from fumehood.wire.exchanges import exchange_to_pb
from fumehood.wire.ports import (
    EpisodeMessage,
    InlineAgent,
    Opened,
    PlayedInline,
    ServiceHealth,
    SpecRejected,
)
from fumehood_agent._proto.v1 import control_pb2, control_pb2_grpc

CALL_TIMEOUT_S = 30.0
"""For the answer to a short call; the service answers in milliseconds or is gone."""

_GONE = (grpc.RpcError, ValueError)
"""What a call to a service raises that is gone. ValueError where another call found it dead before, so that
its connection was closed on this side."""


@dataclass(frozen=True, slots=True)
class OpenSeats:
    """An episode whose seats can be reached."""

    directories: Mapping[str, Path]
    """Folder of each seat's sockets, by seat, in the order of the specification."""
    messages: Generator[EpisodeMessage, None, None]
    """What happens in the episode until it is closed."""


class ControlClient:
    """A service process, as the orchestrator sees it. Safe to use from several threads."""

    def __init__(self, socket_path: str) -> None:
        options = [
            ("grpc.max_send_message_length", SPEC_BYTES),
            # What a trace holds is up to the agent; to stop reading it would let an agent break its episode.
            ("grpc.max_receive_message_length", -1),
        ]
        self.in_doubt = False
        """Whether something was not answered since the service was last found ready."""
        self._channel = grpc.insecure_channel(f"unix:{socket_path}", options=options)
        self._stub = control_pb2_grpc.ControlServiceStub(self._channel)

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait until the service answers.

        Raises:
            InfraError: it does not within ``timeout_s`` seconds.
        """
        try:
            self._stub.Health(control_pb2.HealthRequest(), timeout=timeout_s, wait_for_ready=True)
        except _GONE as error:
            raise self._lost(error) from None
        self.in_doubt = False

    def open_episode(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = ()
    ) -> Generator[EpisodeMessage, None, None]:
        """Open an episode and yield what happens in it until it is closed; to stop listening closes it too.

        Args:
            spec: the episode.
            exchanges: what models answered before, where they are replayed.

        Raises:
            SpecError: the specification cannot cross the wire.
            InfraError: the service is gone.
        """
        before = [exchange_to_pb(exchange) for exchange in exchanges]
        request = control_pb2.OpenEpisodeRequest(spec=spec_to_pb(spec), exchanges=before)
        try:
            stream = self._stub.OpenEpisode(request)
        except _GONE as error:
            raise self._lost(error) from None
        # Only the first message is due soon; how long an episode lasts is not known here.
        patience = Timer(CALL_TIMEOUT_S, stream.cancel)
        patience.daemon = True
        patience.start()
        try:
            for message in stream:
                patience.cancel()
                yield message_from_pb(message)
        except grpc.RpcError as error:
            raise self._lost(error) from None
        finally:
            patience.cancel()
            stream.cancel()  # type: ignore[no-untyped-call]  # its stub lacks a type

    def open_seats(self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = ()) -> OpenSeats:
        """Open an episode and return its sockets, as :meth:`open_episode` does.

        Raises:
            SpecError: the specification cannot be hosted.
            InfraError: the service is gone.
        """
        messages = self.open_episode(spec, exchanges)
        match next(messages, None):
            case Opened(seats):
                return OpenSeats({seat.name: Path(seat.directory) for seat in seats}, messages)
            case SpecRejected(field, reason):
                raise SpecError(field, reason)
            case other:
                raise InfraError(f"the service opened the episode with {other!r}")

    def close_episode(self, episode_id: str, *, timed_out: bool) -> bool:
        """Close an episode; False when no such episode was open.

        Raises:
            InfraError: the service is gone.
        """
        reason = (
            control_pb2.CLOSE_REASON_TIMED_OUT if timed_out else control_pb2.CLOSE_REASON_AGENT_DONE
        )
        request = control_pb2.CloseEpisodeRequest(episode_id=episode_id, reason=reason)
        try:
            return self._stub.CloseEpisode(request, timeout=CALL_TIMEOUT_S).was_open
        except _GONE as error:
            raise self._lost(error) from None

    def play_inline(
        self, spec: EpisodeSpec, agents: Sequence[InlineAgent], timeout_s: float
    ) -> PlayedInline:
        """Play one whole episode with built-in agents inside the service.

        Args:
            spec: the episode.
            agents: one per seat.
            timeout_s: time until the answer must be there, seconds.

        Raises:
            SpecError: the specification cannot cross the wire.
            InfraError: the service is gone, or has not answered in time.
        """
        request = control_pb2.PlayInlineRequest(
            spec=spec_to_pb(spec), agents=map(inline_agent_to_pb, agents)
        )
        try:
            return played_from_pb(self._stub.PlayInline(request, timeout=timeout_s))
        except _GONE as error:
            raise self._lost(error) from None

    def health(self) -> ServiceHealth:
        """Return how the service is.

        Raises:
            InfraError: the service is gone.
        """
        try:
            health = self._stub.Health(control_pb2.HealthRequest(), timeout=CALL_TIMEOUT_S)
        except _GONE as error:
            raise self._lost(error) from None
        return ServiceHealth(
            health.episodes_open, health.episodes_closed, health.resident_bytes, health.version
        )

    def close(self) -> None:
        """Drop the connection."""
        self._channel.close()

    def _lost(self, error: Exception) -> InfraError:
        self.in_doubt = True
        code = error.code().name if isinstance(error, grpc.Call) else type(error).__name__
        return InfraError(f"the sandbox service does not answer ({code})")
