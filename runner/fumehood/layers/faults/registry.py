"""All fault families, and the layers that a fault plan becomes."""

from __future__ import annotations

from fumehood.core.errors import InputError, SpecError
from fumehood.core.fault_plan import FaultPlan, RandomSource
from fumehood.core.registry import Registry
from fumehood.core.virtual_time import KeepsTime
from fumehood.layers.faults.family import BoundFault, FaultFamily, Trigger

FAMILIES: Registry[type[FaultFamily]] = Registry(
    "fault family",
    {
        "adversarial_error": "fumehood.layers.faults.adversarial_error:AdversarialError",
        "authz": "fumehood.layers.faults.authz:Authz",
        "duplicate_delivery": "fumehood.layers.faults.duplicate_delivery:DuplicateDelivery",
        "flapping": "fumehood.layers.faults.flapping:Flapping",
        "injected_description": "fumehood.layers.faults.injected_description:InjectedDescription",
        "injected_output": "fumehood.layers.faults.injected_output:InjectedOutput",
        "late_answer": "fumehood.layers.faults.late_answer:LateAnswer",
        "lost_reply": "fumehood.layers.faults.lost_reply:LostReply",
        "out_of_order": "fumehood.layers.faults.out_of_order:OutOfOrder",
        "outage": "fumehood.layers.faults.outage:Outage",
        "partial_answer": "fumehood.layers.faults.partial_answer:PartialAnswer",
        "quota": "fumehood.layers.faults.quota:Quota",
        "rate_limit": "fumehood.layers.faults.rate_limit:RateLimit",
        "schema_change": "fumehood.layers.faults.schema_change:SchemaChange",
        "schema_drift": "fumehood.layers.faults.schema_drift:SchemaDrift",
        "stale_read": "fumehood.layers.faults.stale_read:StaleRead",
        "timeout": "fumehood.layers.faults.timeout:Timeout",
        "wrong_value": "fumehood.layers.faults.wrong_value:WrongValue",
    },
)

TOOLMISUSE_FAMILIES: Registry[type[FaultFamily]] = Registry(
    "fault family",
    {
        **FAMILIES.table,
        "authz": "fumehood.layers.faults.toolmisuse:ToolMisuseAuthz",
        "schema_drift": "fumehood.layers.faults.toolmisuse:ToolMisuseSchemaDrift",
    },
)
"""The families as ToolMisuseBench defines them, for the harness mode of that name."""


def fault_layers(
    plan: FaultPlan,
    random_source: RandomSource,
    families: Registry[type[FaultFamily]],
    clock: KeepsTime | None = None,
) -> tuple[FaultFamily, ...]:
    """Return one layer per rule, outermost first.

    Args:
        plan: the order of its rules matters only among rules of one family.
        random_source: decides triggers with a probability.
        families: of the harness mode.
        clock: virtual time of the world; None if it keeps no time.

    Raises:
        SpecError: the family, trigger or payload of a rule cannot be used.
    """
    layers = []
    for rule in plan:
        try:
            family = families.load(rule.family)
        except InputError as error:
            raise SpecError(rule.location("family"), str(error)) from None
        layers.append(family(BoundFault(rule, Trigger.of(rule), random_source, clock)))
    return tuple(sorted(layers, key=_position))


def _position(layer: FaultFamily) -> tuple[int, str, int]:
    # Layers that rewrite results work on the way out, so the first rule of the plan is innermost.
    rule = layer.fault.rule
    return layer.order, rule.family, -rule.index if layer.rewrites_results else rule.index
