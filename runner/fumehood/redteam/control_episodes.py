"""Two control episodes in the attacked service: a working one and a silent one.

The working episode shows whether an attack disturbs others. No event may appear in the silent
episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Self

import structlog

from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import InfraError
from fumehood.core.ledger import Budget
from fumehood.redteam.victim import INTERVAL_S, RARE_S, Latencies, Victim
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import EpisodeMessage, Records

_log = structlog.get_logger("fumehood.redteam")

_READ_REST_S = 10
"""How long the rest of the trace of a closed episode may take."""


class ControlEpisodes:
    """Opens both episodes, makes calls in one and reports disturbances. A context manager."""

    def __init__(self, client: ControlClient, *, interference: bool) -> None:
        """Create the episodes; ``interference``: call so often that latencies can be compared."""
        self._client = client
        self._interval_s = INTERVAL_S if interference else RARE_S
        self._silent = _OpenEpisode(client, "silent")
        self._working = _OpenEpisode(client, "working")
        self._to_close = ExitStack()

    def __enter__(self) -> Self:
        self._silent.open()
        self._working.open()
        self._victim = self._to_close.enter_context(
            Victim(self._working.socket_dir, self._interval_s)
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._to_close.close()
        for episode in (self._silent, self._working):
            episode.close()

    @property
    def folder(self) -> bytes:
        """Host folder with all sockets of the service."""
        return str(self._silent.socket_dir.parents[2]).encode()

    def argument(self) -> str:
        """Return the path of the silent episode's socket as an argument of an agent."""
        return f"neighbour={self._silent.socket_dir}/grpc.sock"

    def latencies(self) -> dict[str, Latencies]:
        """Return the latencies of the working episode's calls since the last call, by protocol."""
        return self._victim.take_latencies()

    def harmed(self) -> Iterator[str]:
        """Yield the disturbances since the last call, except for latencies."""
        errors = self._victim.take_errors()
        if errors:
            yield f"another episode was not served: {errors[0]}"
        if self._silent.take_events():
            yield "a call was made in another episode"


class _OpenEpisode:
    """One episode without an agent."""

    def __init__(self, client: ControlClient, name: str) -> None:
        self.socket_dir = Path()
        self._client = client
        self._spec = control_spec(name)
        self._events = -1
        self._is_closed = False
        self._messages: Iterator[EpisodeMessage] = iter(())
        self._thread = Thread(target=self._count, name="control-trace", daemon=True)

    def open(self) -> None:
        opened = self._client.open_seats(self._spec)
        self._messages = opened.messages
        self.socket_dir = opened.directories[self._spec.seats[0].name]
        self._thread.start()

    def take_events(self) -> int:
        """Return the number of events since the last call, without the opening event."""
        events, self._events = self._events, 0
        return events

    def close(self) -> None:
        self._is_closed = True
        try:
            self._client.close_episode(self._spec.episode_id, timed_out=False)
        except InfraError as error:
            _log.warning("a control episode could not be closed", error=str(error))
        if self._thread.is_alive():
            # gRPC must not read the trace while its channel is closed.
            self._thread.join(_READ_REST_S)

    def _count(self) -> None:
        try:
            for message in self._messages:
                if isinstance(message, Records):
                    self._events += len(message.records)
        except InfraError as error:
            if not self._is_closed:
                _log.warning("the trace of a control episode ended early", error=str(error))


def control_spec(name: str) -> EpisodeSpec:
    """Return an episode with one file and a day of wall time."""
    return EpisodeSpec(
        episode_id=name,
        world="files",
        harness_mode="native",
        initial_state={"files": {"/a.txt": "x"}},
        fault_plan=(),
        seed=1,
        seats=(SeatSpec(instruction="Wait.", budget=Budget(wall_ms=24 * 3600 * 1000)),),
    )
