"""The harness modes, and the imports that a service needs before it is confined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fumehood.core.clock import Clock
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.registry import Registry
from fumehood.core.trace import Recorder
from fumehood.layers.faults.registry import FAMILIES, TOOLMISUSE_FAMILIES
from fumehood.monitors.review import Reviewer
from fumehood.third_party.process import CheckerProcess, start_checkers
from fumehood.turn_policies.registry import TURN_POLICIES
from fumehood.worlds import registry as worlds_registry
from fumehood.worlds.registry import WORLDS, checkers_of

open_outside = worlds_registry.open_outside
preload = worlds_registry.preload
readable_paths = worlds_registry.readable_paths


class HarnessMode(Protocol):
    """Composes the layers of an episode."""

    def open_episode(
        self,
        spec: EpisodeSpec,
        recorder: Recorder,
        clock: Clock,
        reviewer: Reviewer | None = None,
    ) -> Episode:
        """Build the world and the seats, and record that the episode is open.

        Args:
            spec: the episode.
            recorder: receives the events.
            clock: measures how long calls take.
            reviewer: asks the monitors of the episode; None for no monitors.

        Raises:
            SpecError: a field of ``spec`` is invalid.
            MonitorsBroken: a monitor does not begin.
        """


HARNESS_MODES: Registry[Callable[[], HarnessMode]] = Registry(
    "harness mode",
    {
        "native": "fumehood.harness_modes.native:Native",
        "encrypted": "fumehood.harness_modes.encrypted:EncryptedQuestions",
        "toolmisuse": "fumehood.harness_modes.toolmisuse:ToolMisuse",
    },
)


def start_checkers_of(worlds: Iterable[str]) -> list[CheckerProcess]:
    """Start the third-party checkers that answer calls of these worlds, without a thread."""
    return start_checkers(checkers_of(worlds))


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
