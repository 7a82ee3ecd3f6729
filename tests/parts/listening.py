"""An orchestrator's side of an episode: opens it, reads along, closes it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import InfraError
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.trace import Record
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import EpisodeMessage, Records, SeatWorkEnded, SpecRejected

PATIENCE_S = 20.0


class Listened:
    """An open episode and all that was heard of it so far."""

    def __init__(self, client: ControlClient, spec: EpisodeSpec, *, is_held: bool = False) -> None:
        self.spec = spec
        self.messages: list[EpisodeMessage] = []
        self.lost: InfraError | None = None
        self._client = client
        opened = client.open_seats(spec, is_held=is_held)
        self._stream = opened.messages
        self.directories = {name: str(path) for name, path in opened.directories.items()}
        self.directory = self.directories[spec.seats[0].name]
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self, *, timed_out: bool = False) -> bool:
        """Close the episode and hear it out."""
        was_open = self._client.close_episode(self.spec.episode_id, timed_out=timed_out)
        self.hear_out()
        return was_open

    def hear_out(self) -> None:
        """Read until the stream ends by itself."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the stream goes on"

    @property
    def records(self) -> list[Record]:
        """Every record heard."""
        return [
            record
            for message in self.messages
            if isinstance(message, Records)
            for record in message.records
        ]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every event heard."""
        return [json.loads(record.event_json) for record in self.records]

    @property
    def evidence(self) -> Evidence:
        """What the closed episode's trace proves."""
        return read_evidence(self.events)

    @property
    def ended_seats(self) -> list[str]:
        """Seats whose work is said to have ended."""
        return [message.name for message in self.messages if isinstance(message, SeatWorkEnded)]

    @property
    def unhostable(self) -> SpecRejected | None:
        """Why the world could not go on, if it could not."""
        return next(
            (message for message in self.messages if isinstance(message, SpecRejected)), None
        )

    def _read(self) -> None:
        try:
            for message in self._stream:
                self.messages.append(message)
        except InfraError as error:
            self.lost = error


@contextmanager
def listening(
    client: ControlClient, spec: EpisodeSpec, *, is_held: bool = False
) -> Iterator[Listened]:
    """Open an episode; it is closed afterwards if it was not before."""
    episode = Listened(client, spec, is_held=is_held)
    try:
        yield episode
    finally:
        if episode.lost is None:
            episode.close()


def wait_until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Wait until a condition holds, and return whether it does."""
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
