"""Every profile there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from fumehood.core.clock import Clock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.registry import Registry
from fumehood.core.trace import Recorder
from fumehood.layers.faults.registry import FAMILIES, TOOLMISUSE_FAMILIES
from fumehood.worlds.registry import WORLDS, preload


class HarnessMode(Protocol):
    """A way to run an episode."""

    def open_episode(self, spec: EpisodeSpec, recorder: Recorder, clock: Clock) -> Episode:
        """Build the world and the doors to it; records that the episode is open.

        Raises:
            SpecError: a field of ``spec`` cannot be used.
        """
        ...


HARNESS_MODES: Registry[Callable[[], HarnessMode]] = Registry(
    "harness mode",
    {
        "native": "fumehood.harness_modes.native:Native",
        "encrypted": "fumehood.harness_modes.encrypted:EncryptedQuestions",
        "toolmisuse": "fumehood.harness_modes.toolmisuse:ToolMisuse",
    },
)


def load_libraries(worlds: Iterable[str]) -> None:
    """Import what these worlds need."""
    preload(worlds)


def load_all() -> None:
    """Import every profile, and every world and fault family that one may ask for later."""
    for registry in (HARNESS_MODES, WORLDS, FAMILIES, TOOLMISUSE_FAMILIES):
        registry.load_all()
