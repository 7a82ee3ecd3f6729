"""From a plan to layers."""

from __future__ import annotations

from collections.abc import Mapping

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultPlan
from fumehood.core.random_source import RandomSource
from fumehood.core.tools import Layer
from fumehood.layers.faults.payload import field_name
from fumehood.layers.faults.table import FAMILIES
from fumehood.layers.faults.trigger import BoundFault, Trigger

WORKS_ON_THE_WAY_OUT = "adversarial_error"


def arm(
    plan: FaultPlan, random_source: RandomSource, families: Mapping[str, str]
) -> tuple[Layer, ...]:
    """Return one layer a rule, outermost first.

    Args:
        plan: whose own order only decides among rules of one family.
        random_source: where the rules' chance comes from.
        families: fault type as a plan names it → entry of the family table, outermost first.

    Raises:
        SpecError: a rule's family, trigger or payload cannot be used.
    """
    for rule in plan:
        if rule.family not in families:
            raise SpecError(
                field_name(rule, "fault_type"), f"no fault family is called {rule.family!r}"
            )
    layers: list[Layer] = []
    for fault_type, entry in families.items():
        rules = [rule for rule in plan if rule.family == fault_type]
        # A rewriter works on the way out, so the first in the plan has to be the innermost.
        for rule in reversed(rules) if fault_type == WORKS_ON_THE_WAY_OUT else rules:
            layers.append(FAMILIES.load(entry)(BoundFault(rule, Trigger.of(rule), random_source)))
    return tuple(layers)
