"""The orchestrator's side of a lane."""

from __future__ import annotations

import socket
from contextlib import suppress

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.wire.convert import played_from_pb, spec_to_pb
from fumehood.wire.frames import Frames
from fumehood.wire.lane_server import AGENT_SOCKET, TIME_IS_OVER
from fumehood.wire.ports import LaneSockets, Played
from fumehood_agent._proto.v1 import control_pb2

TRACE_BYTES = 2**31 - 1
"""Longest message that the framing can hold: what a trace says is up to the agent."""


class LaneClient:
    """A lane, as the orchestrator sees it. For one thread at a time."""

    def __init__(self, sockets: LaneSockets) -> None:
        """Connect.

        Raises:
            InfraError: nobody listens.
        """
        self.agent_directory = sockets.agent_directory
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(sockets.control)
        except OSError as error:
            connection.close()
            raise InfraError(
                f"a lane of the sandbox service cannot be reached: {error.strerror}"
            ) from None
        self._frames = Frames(connection, TRACE_BYTES)

    def begin(self, spec: EpisodeSpec) -> None:
        """Begin an episode; ``wait`` says how it went.

        Raises:
            SpecError: the specification cannot cross the wire.
            InfraError: the service is gone.
        """
        try:
            self._frames.send(spec_to_pb(spec).SerializeToString())
        except OSError:
            raise _lost() from None

    def wait(self, timeout_s: float) -> Played | None:
        """Return what came of the episode that was begun; None when it is not at its end in time.

        Raises:
            InfraError: the service is gone.
        """
        self._frames.set_timeout(timeout_s)
        try:
            raw = self._frames.receive()
        except TimeoutError:
            return None
        finally:
            self._frames.set_timeout(None)
        if raw is None:
            raise _lost()
        return played_from_pb(control_pb2.PlayedEpisode.FromString(raw))

    def say_time_is_over(self) -> None:
        """Tell the service, before the agent is stopped, why it goes."""
        with suppress(OSError):
            self._frames.send(TIME_IS_OVER)

    def stand_in_for_agent(self) -> None:
        """Come to the lane as its agent and leave at once, because the agent will not come any more."""
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.connect(f"{self.agent_directory}/{AGENT_SOCKET}")

    def close(self) -> None:
        """Hang up: the lane is over."""
        self._frames.close()


def _lost() -> InfraError:
    return InfraError("the sandbox service does not answer (the lane is closed)")
