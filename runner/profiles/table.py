"""Every profile there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runner.core.registry import Registry
from runner.faults.table import FAMILIES
from runner.profiles.profile import Profile
from runner.worlds.table import WORLDS, preload

PROFILES: Registry[Callable[[], Profile]] = Registry(
    "profile",
    {
        "native": "runner.profiles.native:Native",
        "veiled": "runner.profiles.veiled:Veiled",
        "toolmisuse": "runner.profiles.toolmisuse:ToolMisuse",
    },
)


def load_libraries(worlds: Iterable[str]) -> None:
    """Import what these worlds need."""
    preload(worlds)


def load_all() -> None:
    """Import every profile, and every world and fault family that one may ask for later."""
    for registry in (PROFILES, WORLDS, FAMILIES):
        registry.load_all()
