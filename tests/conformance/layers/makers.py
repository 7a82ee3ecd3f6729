"""Every layer there is, ready to stand around a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from fumehood.core.clock import StoppedClock
from fumehood.core.dice import NamedDice
from fumehood.core.fault_plan import FaultRule
from fumehood.core.ledger import Budget, Ledger
from fumehood.core.tools import Layer
from fumehood.layers.charged import Charged
from fumehood.layers.concealed import Concealed
from fumehood.layers.disclosed import Disclosed
from fumehood.layers.faults.table import FAMILIES
from fumehood.layers.faults.trigger import Armed, Trigger
from fumehood.layers.traced import Traced
from fumehood.layers.validated import Validated
from fumehood.layers.validated_loosely import ValidatedLoosely
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
    return FAMILIES.load(family)(Armed(rule, Trigger.of(rule), NamedDice(1)))


def _quiet(family: str) -> MakeLayer:
    return lambda: _fault(family, {"on_tool": "another_tool"})


def _loud(family: str) -> MakeLayer:
    return lambda: _fault(family, {})


_WORLD = Files({"files": {}})

PASSING: Mapping[str, MakeLayer] = {
    "traced": lambda: Traced("agent", _WORLD, MemoryRecorder(), StoppedClock(), count(1)),
    "charged": lambda: Charged(Ledger(Budget(steps=9, calls=9, retries=9))),
    "concealed": Concealed,
    "disclosed": Disclosed,
    "validated": lambda: Validated(_WORLD.list_tools()),
    "validated_loosely": lambda: ValidatedLoosely("files_v1", _WORLD.list_tools()),
    **{f"quiet {family}": _quiet(family) for family in FAMILIES},
}
"""Layers that have nothing to say about a call that fits."""

ACTING: Mapping[str, MakeLayer] = {
    "charged, budget used up": lambda: Charged(Ledger(Budget(steps=0))),
    "charged, no failure tolerated": lambda: Charged(Ledger(Budget(retries=0))),
    **{f"loud {family}": _loud(family) for family in FAMILIES},
}
"""Layers that act on whatever comes."""
