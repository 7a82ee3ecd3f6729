"""The gRPC server of the orchestrator's socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore

import grpc

from fumehood.core.errors import SpecError
from fumehood.core.user_ids import EPISODE_UIDS
from fumehood.wire.convert import (
    exchange_from_pb,
    inline_agent_from_pb,
    message_to_pb,
    played_to_pb,
    spec_from_pb,
)
from fumehood.wire.ports import HostPort, PlayedInline, SpecRejected
from fumehood_agent._proto.v1 import control_pb2, control_pb2_grpc

SPEC_BYTES = 64 * 1024 * 1024
"""Size of one episode specification. A state can be a whole database."""
OPEN_EPISODES = len(EPISODE_UIDS)
"""Open episodes of one service: each has a process with its own user, and occupies a thread."""
SHORT_CALLS = 16
"""Threads for other calls: a full service can still close episodes and report its health."""


class ControlServer:
    """Serves the host on one Unix socket."""

    def __init__(
        self, host: HostPort, socket_path: str, open_episodes: int = OPEN_EPISODES
    ) -> None:
        """Start listening.

        Args:
            host: the service to serve.
            socket_path: where to listen, at most 107 bytes.
            open_episodes: limit of open episodes; the server rejects any further one.

        Raises:
            RuntimeError: the socket cannot be bound.
        """
        self._server = grpc.server(
            ThreadPoolExecutor(open_episodes + SHORT_CALLS, "control"),
            options=[("grpc.max_receive_message_length", SPEC_BYTES)],
        )
        control_pb2_grpc.add_ControlServiceServicer_to_server(
            _ControlService(host, open_episodes), self._server
        )
        self._server.add_insecure_port(f"unix:{socket_path}")
        self._server.start()

    def stop(self) -> None:
        """Close all connections."""
        self._server.stop(None).wait()


class _ControlService(control_pb2_grpc.ControlServiceServicer):
    def __init__(self, host: HostPort, open_episodes: int) -> None:
        self._host = host
        self._open_episodes = open_episodes
        self._places = BoundedSemaphore(open_episodes)

    def OpenEpisode(
        self, request: control_pb2.OpenEpisodeRequest, context: grpc.ServicerContext
    ) -> Iterator[control_pb2.OpenEpisodeResponse]:
        if not self._places.acquire(blocking=False):
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"the limit of {self._open_episodes} open episodes is reached",
            )
        try:
            yield from self._open(request, context)
        finally:
            self._places.release()

    def _open(
        self, request: control_pb2.OpenEpisodeRequest, context: grpc.ServicerContext
    ) -> Iterator[control_pb2.OpenEpisodeResponse]:
        try:
            exchanges = [exchange_from_pb(exchange) for exchange in request.exchanges]
            spec = spec_from_pb(request.spec)
            episode = self._host.open_episode(spec, exchanges, is_held=request.is_held)
        except SpecError as error:
            yield message_to_pb(SpecRejected(error.field, error.reason))
            return
        # A thread that waits for the next event does not notice that the orchestrator disconnected.
        if not context.add_callback(episode.abandon):
            episode.abandon()
        for message in episode.messages():
            yield message_to_pb(message)

    def BeginEpisode(
        self, request: control_pb2.BeginEpisodeRequest, context: grpc.ServicerContext
    ) -> control_pb2.BeginEpisodeResponse:
        self._host.begin_episode(request.episode_id)
        return control_pb2.BeginEpisodeResponse()

    def CloseEpisode(
        self, request: control_pb2.CloseEpisodeRequest, context: grpc.ServicerContext
    ) -> control_pb2.CloseEpisodeResponse:
        timed_out = request.reason == control_pb2.CLOSE_REASON_TIMED_OUT
        was_open = self._host.close_episode(request.episode_id, timed_out)
        return control_pb2.CloseEpisodeResponse(was_open=was_open)

    def PlayInline(
        self, request: control_pb2.PlayInlineRequest, context: grpc.ServicerContext
    ) -> control_pb2.PlayInlineResponse:
        played = self._play(request)
        played.more.extend(map(self._play, request.more))
        return played

    def _play(self, request: control_pb2.PlayInlineRequest) -> control_pb2.PlayInlineResponse:
        agents = [inline_agent_from_pb(agent) for agent in request.agents]
        try:
            played = self._host.play_inline(spec_from_pb(request.spec), agents)
        except SpecError as error:
            played = PlayedInline((), SpecRejected(error.field, error.reason))
        return played_to_pb(played)

    def Health(
        self, request: control_pb2.HealthRequest, context: grpc.ServicerContext
    ) -> control_pb2.HealthResponse:
        health = self._host.health()
        return control_pb2.HealthResponse(
            episodes_open=health.episodes_open,
            episodes_closed=health.episodes_closed,
            resident_bytes=health.resident_bytes,
            version=health.version,
        )
