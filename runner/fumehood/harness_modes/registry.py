"""The harness modes, and the imports that a service needs before it is confined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fumehood.core.clock import Clock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import DataSource, EpisodeSpec
from fumehood.core.registry import Registry
from fumehood.core.trace import Recorder
from fumehood.layers.faults.registry import FAMILIES, TOOLMISUSE_FAMILIES
from fumehood.turn_policies.registry import TURN_POLICIES
from fumehood.worlds import registry as worlds_registry
from fumehood.worlds.registry import WORLDS, preload


class HarnessMode(Protocol):
    """Composes the layers of an episode."""

    def open_episode(self, spec: EpisodeSpec, recorder: Recorder, clock: Clock) -> Episode:
        """Build the world and the seats, and record that the episode is open.

        Raises:
            SpecError: a field of ``spec`` is invalid.
        """


HARNESS_MODES: Registry[Callable[[], HarnessMode]] = Registry(
    "harness mode",
    {
        "native": "fumehood.harness_modes.native:Native",
        "encrypted": "fumehood.harness_modes.encrypted:EncryptedQuestions",
        "toolmisuse": "fumehood.harness_modes.toolmisuse:ToolMisuse",
    },
)


def load_libraries(worlds: Iterable[str]) -> None:
    """Import the libraries of these worlds."""
    preload(worlds)


def runs_confined(world: str, data_source: DataSource | None = None) -> bool:
    """Return whether an episode needs neither the network nor another process.

    Raises:
        InputError: there is no such world.
    """
    return worlds_registry.runs_confined(world, data_source)


def readable_paths(data_source: DataSource | None) -> tuple[str, ...]:
    """Return the files and folders that a data source names."""
    return worlds_registry.readable_paths(data_source)


def load_all() -> None:
    """Import all harness modes, worlds, fault families and turn policies."""
    registries: tuple[Registry[Any], ...] = (
        HARNESS_MODES,
        WORLDS,
        FAMILIES,
        TOOLMISUSE_FAMILIES,
        TURN_POLICIES,
    )
    for registry in registries:
        registry.load_all()
