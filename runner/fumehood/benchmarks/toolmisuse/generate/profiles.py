"""How large a suite is and by which release's rules it is made (ToolMisuseBench, spec part 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fumehood.benchmarks.toolmisuse.files import SPLITS
from fumehood.benchmarks.toolmisuse.record import Split
from fumehood.core.errors import InputError, nearest


@dataclass(frozen=True, slots=True)
class Profile:
    """One size."""

    name: str
    release: str
    """``"0.1"`` or ``"0.2"``: decides ids, templates, faults and budgets."""
    sizes: Mapping[Split, int]
    """Split → number of tasks."""


def _sized(name: str, release: str, *sizes: int) -> Profile:
    return Profile(name, release, dict(zip(SPLITS, sizes, strict=True)))


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        _sized("default", "0.1", 24, 12, 12),
        _sized("small", "0.1", 200, 50, 50),
        _sized("medium", "0.1", 1000, 200, 300),
        _sized("large", "0.1", 5000, 800, 1000),
        _sized("v0.2_large", "0.2", 6000, 900, 1200),
    )
}


def profile_of(name: str, overrides: Mapping[str, int] | None = None) -> Profile:
    """Return a profile, with other split sizes where overrides name them.

    Raises:
        InputError: there is no such profile or split, or a size is negative.
    """
    profile = PROFILES.get(name)
    if profile is None:
        raise InputError(f"no profile is called {name!r}; {nearest(name, list(PROFILES))}")
    for split, size in (overrides or {}).items():
        if split not in SPLITS:
            raise InputError(f"no split is called {split!r}; {nearest(split, SPLITS)}")
        if size < 0:
            raise InputError(f"split {split} cannot have {size} tasks")
    sizes = {split: (overrides or {}).get(split, size) for split, size in profile.sizes.items()}
    return Profile(profile.name, profile.release, sizes)
