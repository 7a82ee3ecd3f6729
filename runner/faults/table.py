"""Every fault family there is."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.registry import Registry
from runner.core.tools import Layer
from runner.faults.trigger import Armed

FaultFamily = Callable[[Armed], Layer]
"""Makes the layer of one armed rule; raises SpecError for a payload it cannot use."""

FAMILIES: Registry[FaultFamily] = Registry(
    "fault",
    {
        "access_gate": "runner.faults.access_gate:AccessGate",
        "adversarial_error": "runner.faults.adversarial_error:AdversarialError",
        "authz": "runner.faults.authz:Authz",
        "interface_drift": "runner.faults.interface_drift:InterfaceDrift",
        "rate_limit": "runner.faults.rate_limit:RateLimit",
        "schema_drift": "runner.faults.schema_drift:SchemaDrift",
        "timeout": "runner.faults.timeout:Timeout",
    },
)
