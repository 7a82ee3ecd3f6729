"""Replays at the core: the door, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.clock import StoppedClock
from fumehood.core.evidence import read_evidence
from fumehood.harness_modes.registry import PROFILES
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.testing.memory_recorder import MemoryRecorder
from fumehood.testing.memory_seat import MemorySeat
from fumehood.vectors.observed import Watched, observed
from fumehood.vectors.record import Vector
from fumehood.vectors.replay import drive

WALL_MS = 60_000


class ViaCore:
    """Opens each episode in this process."""

    def play(self, vector: Vector) -> Mapping[str, Any]:
        """Play the vector through the door."""
        case = vector.case()
        recorder = MemoryRecorder()
        profile = PROFILES.load(case.task.profile)()
        spec = PlannedEpisode("vector", case, 0, case.task.seed).to_spec(WALL_MS)
        episode = profile.open_episode(spec, recorder, StoppedClock())
        seat = Watched(MemorySeat(episode.seats[0]))
        drive(vector, seat)
        episode.close()
        return observed(case, read_evidence(recorder.written()), seat.observations)
