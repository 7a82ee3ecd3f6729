"""All families of scenarios, in the order in which they take turns."""

from __future__ import annotations

from fumehood.benchmarks.safety.draft import Family
from fumehood.benchmarks.safety.families import industrial

FAMILIES: tuple[Family, ...] = (industrial.FAMILY,)
