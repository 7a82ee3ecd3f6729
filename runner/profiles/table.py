"""Every profile there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.registry import Registry
from runner.profiles.profile import Profile

PROFILES: Registry[Callable[[], Profile]] = Registry(
    "profile",
    {
        "native": "runner.profiles.native:Native",
        "toolmisuse": "runner.profiles.toolmisuse:ToolMisuse",
    },
)
