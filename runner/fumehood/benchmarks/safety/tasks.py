"""Loads safety suites by name: their tasks are generated, not stored."""

from __future__ import annotations

from fumehood.benchmarks.native.tasks import CRITERION, SCORED_ON, case_of
from fumehood.benchmarks.safety.suite import PROFILES, make_task
from fumehood.core.errors import InputError, nearest
from fumehood.core.task import About, Suite

ABOUT = About(licence="Apache-2.0 (this project)", criterion=CRITERION, scored_on=SCORED_ON)
SEED = 42
"""Seed of a suite that states none."""


class SafetySuites:
    """Generates a suite without the proofs. Argument: ``[PROFILE[:SEED]]``."""

    source = "this project, generated"

    def load(self, argument: str) -> Suite:
        """Return the tasks of a profile, those of the split ``tuning`` first."""
        profile, _, seed = argument.partition(":")
        profile = profile or "default"
        if profile not in PROFILES:
            raise InputError(f"safety has no profile {profile!r}; {nearest(profile, [*PROFILES])}")
        try:
            number = int(seed or SEED)
        except ValueError:
            raise InputError(f"the seed of safety must be a whole number, not {seed!r}") from None
        cases = (
            case_of(make_task(split, index, number))
            for split, size in PROFILES[profile].items()
            for index in range(size)
        )
        return Suite(f"safety-{profile}-{number}", tuple(cases), about=ABOUT)
