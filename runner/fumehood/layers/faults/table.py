"""Every fault family there is."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.core.registry import Registry
from fumehood.core.tools import Layer
from fumehood.layers.faults.trigger import BoundFault

FaultFamily = Callable[[BoundFault], Layer]
"""Makes the layer of one armed rule; raises SpecError for a payload it cannot use."""

FAMILIES: Registry[FaultFamily] = Registry(
    "fault",
    {
        "access_gate": "fumehood.layers.faults.access_gate:AccessGate",
        "adversarial_error": "fumehood.layers.faults.adversarial_error:AdversarialError",
        "authz": "fumehood.layers.faults.authz:Authz",
        "interface_drift": "fumehood.layers.faults.interface_drift:InterfaceDrift",
        "rate_limit": "fumehood.layers.faults.rate_limit:RateLimit",
        "schema_drift": "fumehood.layers.faults.schema_drift:SchemaDrift",
        "timeout": "fumehood.layers.faults.timeout:Timeout",
    },
)
