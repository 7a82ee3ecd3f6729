"""Every fault family there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultPlan, RandomSource
from fumehood.core.registry import Registry
from fumehood.core.tools import Layer
from fumehood.layers.faults.family import BoundFault, Trigger, field_name

FaultFamily = Callable[[BoundFault], Layer]
"""Makes the layer of one armed rule; raises SpecError for a payload it cannot use."""

FAMILIES: Registry[FaultFamily] = Registry(
    "fault",
    {
        "access_gate": "fumehood.layers.faults.authz:AccessGate",
        "adversarial_error": "fumehood.layers.faults.adversarial_error:AdversarialError",
        "authz": "fumehood.layers.faults.authz:Authz",
        "interface_drift": "fumehood.layers.faults.schema_drift:InterfaceDrift",
        "rate_limit": "fumehood.layers.faults.rate_limit:RateLimit",
        "schema_drift": "fumehood.layers.faults.schema_drift:SchemaDrift",
        "timeout": "fumehood.layers.faults.timeout:Timeout",
    },
)


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
