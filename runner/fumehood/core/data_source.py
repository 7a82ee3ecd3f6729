"""What lies around a world that looks outside: sealed documents, or the network by way of the service."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject


class Environment(Enum):
    """Where searches and pages come from; the tools are the same in each."""

    OFFLINE = "offline"
    """A sealed snapshot, and nothing else."""
    LIVE = "live"
    """The network, within limits."""
    RECORD = "record"
    """The network, and all that it answered is kept."""
    REPLAY = "replay"
    """What was kept, and nothing else."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """The same for every episode of a run. Not part of a world's state, nor, but for its kind, of a trace."""

    environment: Environment
    settings: JsonObject
    """Paths on the service's host, limits of fetching and so on, in the terms of the world that looks out."""

    def to_json(self) -> JsonObject:
        """Return both as one object."""
        return {"environment": self.environment.value, "settings": self.settings}


def surroundings_from_json(value: Json) -> DataSource:
    """Return what :meth:`DataSource.to_json` wrote.

    Raises:
        SpecError: it is of another form.
    """
    match value:
        case {"environment": str(name), "settings": dict(settings)}:
            if name in {each.value for each in Environment}:
                return DataSource(Environment(name), settings)
    raise SpecError("data_source", "must have an environment there is, and settings")
