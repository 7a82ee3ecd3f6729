"""What a profile is."""

from __future__ import annotations

from typing import Protocol

from fumehood.core.clock import Clock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.events import Recorder
from fumehood.core.json_values import JsonObject
from fumehood.core.seat import Reply


class Profile(Protocol):
    """A way to run an episode."""

    def open_episode(self, spec: EpisodeSpec, recorder: Recorder, clock: Clock) -> Episode:
        """Build the world and the doors to it; records that the episode is open.

        Raises:
            SpecError: a field of ``spec`` cannot be used.
        """
        ...

    def recorded_arguments(self, reply: Reply) -> JsonObject | None:
        """Return the arguments that an agent's transcript shows, or None where it shows what was sent."""
        ...
