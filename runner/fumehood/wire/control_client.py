"""The orchestrator's client for the control socket of a service."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import BoundedSemaphore, Timer
from typing import Any

import grpc

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.trace import ModelExchange
from fumehood.wire.control_server import SPEC_BYTES
from fumehood.wire.convert import (
    exchange_to_pb,
    inline_agent_to_pb,
    message_from_pb,
    played_from_pb,
    spec_to_pb,
)
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
"""Deadline for short calls. A live service answers in milliseconds."""
OPENING_MAX = 8
"""Episodes that one service opens at once. More would take longer than the deadline together."""

_common: Any = import_module("grpc._common")
if hasattr(_common, "MAXIMUM_WAIT_TIMEOUT"):
    # Each thread that waits for a message would otherwise wake up ten times a second, which takes a
    # processor with a thousand episodes. Python's locks notice signals without that.
    _common.MAXIMUM_WAIT_TIMEOUT = 3600.0

_GONE = (grpc.RpcError, ValueError)
"""Exceptions of a call to a dead service. ValueError means that the channel was closed after an
earlier failed call."""


@dataclass(frozen=True, slots=True)
class OpenSeats:
    """An open episode whose sockets are listening."""

    directories: Mapping[str, Path]
    """Socket directory of each seat, in the order of the specification."""
    messages: Generator[EpisodeMessage, None, None]
    """The further messages of the episode. Closing the generator closes the episode too."""


class ControlClient:
    """Client of one service process. Safe to use from several threads."""

    def __init__(self, socket_path: str) -> None:
        options = [
            ("grpc.max_send_message_length", SPEC_BYTES),
            # The agent determines the size of the trace. A limit here would let it break its
            # episode.
            ("grpc.max_receive_message_length", -1),
        ]
        self.in_doubt = False
        """Whether a call has failed since the service was last ready."""
        self.has_stuck_agent = False
        """Whether an inline agent exceeded its deadline; only the service's end can stop it."""
        self._opening = BoundedSemaphore(OPENING_MAX)
        self._channel = grpc.insecure_channel(f"unix:{socket_path}", options=options)
        self._stub = control_pb2_grpc.ControlServiceStub(self._channel)

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait until the service answers.

        Raises:
            InfraError: it does not answer within ``timeout_s`` seconds.
        """
        try:
            self._stub.Health(control_pb2.HealthRequest(), timeout=timeout_s, wait_for_ready=True)
        except _GONE as error:
            raise self._service_lost(error) from None
        self.in_doubt = False

    def open_episode(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = (), *, is_held: bool = False
    ) -> Generator[EpisodeMessage, None, None]:
        """Open an episode and yield its messages until it is closed.

        Closing the generator closes the episode too.

        Args:
            spec: the episode.
            exchanges: recorded model requests with their responses, if models are replayed.
            is_held: messages of agents wait until :meth:`begin_episode`.

        Raises:
            SpecError: the specification cannot be sent.
            InfraError: the service does not answer.
        """
        recorded = [exchange_to_pb(exchange) for exchange in exchanges]
        request = control_pb2.OpenEpisodeRequest(
            spec=spec_to_pb(spec), exchanges=recorded, is_held=is_held
        )
        try:
            stream = self._stub.OpenEpisode(request)
        except _GONE as error:
            raise self._service_lost(error) from None
        # Only the first message has a deadline; the caller limits the length of an episode.
        opening_deadline = Timer(CALL_TIMEOUT_S, stream.cancel)
        opening_deadline.daemon = True
        opening_deadline.start()
        try:
            for message in stream:
                opening_deadline.cancel()
                yield message_from_pb(message)
        except grpc.RpcError as error:
            raise self._service_lost(error) from None
        finally:
            opening_deadline.cancel()
            stream.cancel()  # type: ignore[no-untyped-call]  # not typed in the stubs of gRPC

    def open_seats(
        self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = (), *, is_held: bool = False
    ) -> OpenSeats:
        """Open an episode as :meth:`open_episode` does, and wait until its sockets are listening.

        Raises:
            SpecError: the specification cannot be sent or hosted.
            InfraError: the service does not answer.
        """
        with self._opening:
            messages = self.open_episode(spec, exchanges, is_held=is_held)
            opened = next(messages, None)
        match opened:
            case Opened(seats):
                return OpenSeats({seat.name: Path(seat.directory) for seat in seats}, messages)
            case SpecRejected(field, reason):
                raise SpecError(field, reason)
            case other:
                raise InfraError(f"the service did not open the episode; it sent {other!r}")

    def begin_episode(self, episode_id: str) -> None:
        """Begin an episode that was opened with ``is_held``.

        Raises:
            InfraError: the service does not answer.
        """
        request = control_pb2.BeginEpisodeRequest(episode_id=episode_id)
        try:
            self._stub.BeginEpisode(request, timeout=CALL_TIMEOUT_S)
        except _GONE as error:
            raise self._service_lost(error) from None

    def close_episode(self, episode_id: str, *, timed_out: bool) -> bool:
        """Close an episode; return False if no such episode was open.

        Raises:
            InfraError: the service does not answer.
        """
        reason = (
            control_pb2.CLOSE_REASON_TIMED_OUT if timed_out else control_pb2.CLOSE_REASON_AGENT_DONE
        )
        request = control_pb2.CloseEpisodeRequest(episode_id=episode_id, reason=reason)
        try:
            return self._stub.CloseEpisode(request, timeout=CALL_TIMEOUT_S).was_open
        except _GONE as error:
            raise self._service_lost(error) from None

    def play_inline(
        self, episodes: Sequence[tuple[EpisodeSpec, Sequence[InlineAgent]]], timeout_s: float
    ) -> list[PlayedInline]:
        """Play whole episodes with built-in agents inside the service, one after another.

        Args:
            episodes: each with one agent per seat; at least one.
            timeout_s: deadline for the results, seconds.

        Raises:
            SpecError: a specification cannot be sent.
            InfraError: the service did not answer within the deadline.
        """
        request, *more = (
            control_pb2.PlayInlineRequest(
                spec=spec_to_pb(spec), agents=map(inline_agent_to_pb, agents)
            )
            for spec, agents in episodes
        )
        request.more.extend(more)
        try:
            played = self._stub.PlayInline(request, timeout=timeout_s)
            return [played_from_pb(played), *map(played_from_pb, played.more)]
        except _GONE as error:
            if isinstance(error, grpc.Call):
                self.has_stuck_agent |= error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            raise self._service_lost(error) from None

    def health(self) -> ServiceHealth:
        """Return the state of the service.

        Raises:
            InfraError: the service does not answer.
        """
        try:
            health = self._stub.Health(control_pb2.HealthRequest(), timeout=CALL_TIMEOUT_S)
        except _GONE as error:
            raise self._service_lost(error) from None
        return ServiceHealth(
            health.episodes_open, health.episodes_closed, health.resident_bytes, health.version
        )

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _service_lost(self, error: Exception) -> InfraError:
        self.in_doubt = True
        code = error.code().name if isinstance(error, grpc.Call) else type(error).__name__
        return InfraError(f"the service does not answer ({code})")
