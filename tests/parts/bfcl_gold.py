"""BFCL's single-turn gold written out: every argument it names, each with the first value that is not empty.

The oracle leaves out what may be left out; whoever writes down all that the gold names meets its mistakes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
"""Whose gold, written out, BFCL's checker refuses: it names a parameter that the function lacks, or has only
an empty value for a required one."""


def written_out(suite: Suite) -> Suite:
    """Return the suite with such oracles."""
    return replace(suite, cases=tuple(map(_written_out, suite.cases)))


def _written_out(case: Case) -> Case:
    calls: Any = case.gold.criteria[0]["ground_truth"]
    moves = [_move(*item) for call in calls for item in call.items()]
    return replace(case, gold=replace(case.gold, oracle=(*moves, {"submit": ""})))


def _move(name: str, arguments: dict[str, list[Any]]) -> dict[str, Any]:
    given = {key: [value for value in allowed if value != ""] for key, allowed in arguments.items()}
    return {
        "tool_name": name,
        "args": {key: first_allowed(values) for key, values in given.items() if values},
    }
