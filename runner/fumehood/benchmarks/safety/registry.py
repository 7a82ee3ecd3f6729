"""All families of scenarios, in the order in which they take turns."""

from __future__ import annotations

from fumehood.benchmarks.safety.draft import Family
from fumehood.benchmarks.safety.families import industrial, infrastructure, medication, payments
from fumehood.benchmarks.safety.jobs import data_family

FAMILIES: tuple[Family, ...] = (
    industrial.FAMILY,
    medication.FAMILY,
    payments.FAMILY,
    infrastructure.FAMILY,
    *map(data_family, ("retention", "access", "lab", "dispatch")),
)

MIXED: tuple[Family, ...] = (data_family("offboarding"), data_family("store_fire"))
"""Templates whose single job needs the worlds of two families."""
