"""The server behind a lane: one thread, two connections, one episode after another.

An episode in a box costs a server, two sockets, a handful of threads and a process, for the box must not be
trusted. An agent that is trusted may keep its process and its connection; what happens to a call is the same.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from select import POLLIN, poll
from threading import Thread

from google.protobuf.message import DecodeError

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.wire.control_server import SPEC_BYTES
from fumehood.wire.convert import played_to_pb, spec_from_pb
from fumehood.wire.frames import Frames
from fumehood.wire.ports import LaneEpisodePort, LaneSockets, Played, SpecRejected
from fumehood.wire.seat_messages import answer_interaction
from fumehood_agent._proto.v1 import episode_pb2, tool_pb2

AGENT_SOCKET = "lane.sock"
TIME_IS_OVER = b""
"""Said by the orchestrator in the place of an episode, before it stops the agent."""
ARRIVAL_TIMEOUT_S = 30.0
"""For the orchestrator to connect, which it does at once."""

BeginEpisode = Callable[[EpisodeSpec], LaneEpisodePort]
"""Opens an episode without sockets; raises SpecError when it cannot be hosted."""


class LaneServer:
    """Serves one lane until the orchestrator hangs up."""

    def __init__(self, directory: Path, begin: BeginEpisode, message_bytes: int) -> None:
        """Listen at once.

        Args:
            directory: for the sockets; must not exist.
            begin: opens an episode.
            message_bytes: longest message of the agent; a longer one counts as hanging up.

        Raises:
            OSError: a socket cannot be made.
        """
        agent_directory = directory / "agent"
        agent_directory.mkdir(parents=True)
        self.sockets = LaneSockets(str(directory / "control.sock"), str(agent_directory))
        self._directory = directory
        self._begin = begin
        self._message_bytes = message_bytes
        self._orchestrators = _listen(directory / "control.sock")
        self._agents = _listen(agent_directory / AGENT_SOCKET)
        self._agent: Frames | None = None
        self._asked_for_task = False
        """Whether the agent waits already for the task of the episode to come."""
        Thread(target=self._serve, name="lane", daemon=True).start()

    def _serve(self) -> None:
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
            stack.callback(self._hang_up_agent)
            stack.enter_context(self._agents)
            with self._orchestrators:
                orchestrator = _accept(self._orchestrators, SPEC_BYTES)
            if orchestrator is None:
                return
            stack.callback(orchestrator.close)
            # Whoever hangs up while an episode is played does not want its trace.
            with suppress(OSError):
                while (raw := orchestrator.receive()) is not None:
                    if raw == TIME_IS_OVER:
                        continue  # The agent was done before it could be stopped.
                    played = self._play(episode_pb2.EpisodeSpec.FromString(raw), orchestrator)
                    orchestrator.send(played_to_pb(played).SerializeToString())

    def _play(self, message: episode_pb2.EpisodeSpec, orchestrator: Frames) -> Played:
        try:
            episode = self._begin(spec_from_pb(message))
        except SpecError as error:
            return Played((), SpecRejected(error.field, error.reason), agent_gone=False)
        agent_gone = not self._has_played(episode, orchestrator)
        if agent_gone:
            self._hang_up_agent()
        timed_out = agent_gone and self._was_stopped(orchestrator)
        return episode.end(agent_gone=agent_gone, timed_out=timed_out)

    def _has_played(self, episode: LaneEpisodePort, orchestrator: Frames) -> bool:
        """Serve the agent until it asks for the next task; False when it hung up instead."""
        self._agent = self._agent or self._wait_for_agent(orchestrator)
        if self._agent is None:
            return False
        has_task = False
        while True:
            request = self._next_request(self._agent)
            if request is None:
                return False
            if request.HasField("get_task"):
                if has_task:
                    self._asked_for_task = True
                    return True
                has_task = True
            try:
                self._agent.send(answer_interaction(episode.seat, request).SerializeToString())
            except OSError:
                return False

    def _next_request(self, agent: Frames) -> tool_pb2.InteractRequest | None:
        if self._asked_for_task:
            self._asked_for_task = False
            return tool_pb2.InteractRequest(get_task=tool_pb2.GetTaskRequest())
        raw = agent.receive()
        try:
            return None if raw is None else tool_pb2.InteractRequest.FromString(raw)
        except DecodeError:
            return None

    def _wait_for_agent(self, orchestrator: Frames) -> Frames | None:
        """Wait for as long as the orchestrator does, which says when time is over, or hangs up."""
        either = poll()
        either.register(self._agents, POLLIN)
        either.register(orchestrator, POLLIN)
        ready = {descriptor for descriptor, _ in either.poll()}
        return (
            _accept(self._agents, self._message_bytes) if self._agents.fileno() in ready else None
        )

    def _was_stopped(self, orchestrator: Frames) -> bool:
        """Tell whether the agent went because its time is over."""
        said = poll()
        said.register(orchestrator, POLLIN)
        return bool(said.poll(0)) and orchestrator.receive() == TIME_IS_OVER

    def _hang_up_agent(self) -> None:
        if self._agent is not None:
            self._agent.close()


def _listen(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(path))
        # Connecting needs write permission; who may come near is decided by the folders above.
        path.chmod(0o666)
        listening.listen(1)
        listening.settimeout(ARRIVAL_TIMEOUT_S)
    except OSError:
        listening.close()
        raise
    return listening


def _accept(listening: socket.socket, message_bytes: int) -> Frames | None:
    try:
        connection, _ = listening.accept()
    except TimeoutError:
        return None
    connection.settimeout(None)
    return Frames(connection, message_bytes)
