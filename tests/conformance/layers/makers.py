"""Every layer there is, ready to stand around a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from fumehood.core.clock import StoppedClock
from fumehood.core.fault_plan import FaultRule, KeyedRandom
from fumehood.core.ledger import Budget, Ledger
from fumehood.core.tools import Layer
from fumehood.layers.charge_budget import ChargeBudget
from fumehood.layers.fault_visibility import HideFaults, RevealFaults
from fumehood.layers.faults.family import BoundFault, Trigger
from fumehood.layers.faults.registry import FAMILIES
from fumehood.layers.trace_calls import TraceCalls
from fumehood.layers.validate_arguments import ValidateArguments
from fumehood.layers.validate_loosely import ValidateLoosely
from fumehood.testing.memory_recorder import MemoryRecorder
from fumehood.worlds.files import Files

MakeLayer = Callable[[], Layer]

PAYLOADS: Mapping[str, Mapping[str, Any]] = {
    "access_gate": {"required_role": "admin", "required_token": "T"},
    "adversarial_error": {"messages": ["one", "two"], "code": "E1"},
    "authz": {"required_role": "admin"},
    "interface_drift": {"rename_args": {"path": "file_path"}},
    "rate_limit": {"retry_after_ms": 5},
    "schema_drift": {"rename_args": {"path": "file_path"}, "add_required": {"extra": [1]}},
    "timeout": {"timeout_ms": 5},
}
"""Of one rule of each family. A family without one fails the suite."""


def _fault(family: str, trigger: Mapping[str, Any]) -> Layer:
    rule = FaultRule(0, family, dict(trigger), "soft", dict(PAYLOADS[family]))
    return FAMILIES.load(family)(BoundFault(rule, Trigger.of(rule), KeyedRandom(1)))


def _quiet(family: str) -> MakeLayer:
    return lambda: _fault(family, {"on_tool": "another_tool"})


def _loud(family: str) -> MakeLayer:
    return lambda: _fault(family, {})


_WORLD = Files({"files": {}})

PASSING: Mapping[str, MakeLayer] = {
    "traced": lambda: TraceCalls(
        "agent", _WORLD, Ledger(Budget()), MemoryRecorder(), StoppedClock(), count(1)
    ),
    "charged": lambda: ChargeBudget(Ledger(Budget(steps=9, calls=9, retries=9))),
    "concealed": HideFaults,
    "disclosed": RevealFaults,
    "validated": lambda: ValidateArguments(_WORLD.list_tools()),
    "validated_loosely": lambda: ValidateLoosely("files_v1", _WORLD.list_tools()),
    **{f"quiet {family}": _quiet(family) for family in FAMILIES},
}
"""Layers that have nothing to say about a call that fits."""

ACTING: Mapping[str, MakeLayer] = {
    "charged, budget used up": lambda: ChargeBudget(Ledger(Budget(steps=0))),
    "charged, no failure tolerated": lambda: ChargeBudget(Ledger(Budget(retries=0))),
    **{f"loud {family}": _loud(family) for family in FAMILIES},
}
"""Layers that act on whatever comes."""
