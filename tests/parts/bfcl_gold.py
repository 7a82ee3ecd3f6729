"""Oracles that pass every argument BFCL's single-turn gold names, with its first non-empty value.

The normal oracle omits optional arguments. These oracles expose mistakes in the gold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fumehood.benchmarks.bfcl.package import tool_name
from fumehood.benchmarks.bfcl.tasks import first_allowed
from fumehood.core.task import Case, Suite

FAULTY = frozenset(
    {
        "parallel_multiple_12",
        "parallel_multiple_26",
        "live_simple_106-63-0",
        "live_simple_112-68-0",
        "live_multiple_507-149-4",
        "live_multiple_862-181-3",
        "live_multiple_964-207-0",
    }
)
"""Tasks whose gold with all arguments BFCL's checker rejects: it names an unknown parameter, or
allows only an empty value for a required one."""


def with_all_arguments(suite: Suite) -> Suite:
    """Return the suite with these oracles."""
    return replace(suite, cases=tuple(map(_with_all_arguments, suite.cases)))


def _with_all_arguments(case: Case) -> Case:
    calls: Any = case.gold.criteria[0]["ground_truth"]
    moves = [_move(*item) for call in calls for item in call.items()]
    return replace(case, gold=replace(case.gold, oracle=(*moves, {"submit": ""})))


def _move(name: str, arguments: dict[str, list[Any]]) -> dict[str, Any]:
    values_by_name = {
        key: [value for value in allowed if value != ""] for key, allowed in arguments.items()
    }
    return {
        "tool_name": tool_name(name),
        "args": {key: first_allowed(values) for key, values in values_by_name.items() if values},
    }
