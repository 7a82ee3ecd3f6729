"""Every profile there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fumehood.core.registry import Registry
from fumehood.harness_modes.harness_mode import Profile
from fumehood.layers.faults.table import FAMILIES
from fumehood.worlds.table import WORLDS, preload

PROFILES: Registry[Callable[[], Profile]] = Registry(
    "profile",
    {
        "native": "fumehood.harness_modes.native:Native",
        "veiled": "fumehood.harness_modes.encrypted:EncryptedQuestions",
        "toolmisuse": "fumehood.harness_modes.toolmisuse:ToolMisuse",
    },
)


def load_libraries(worlds: Iterable[str]) -> None:
    """Import what these worlds need."""
    preload(worlds)


def load_all() -> None:
    """Import every profile, and every world and fault family that one may ask for later."""
    for registry in (PROFILES, WORLDS, FAMILIES):
        registry.load_all()
