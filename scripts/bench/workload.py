"""What the benchmarks play."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fumehood.benchmarks.registry import load_suite
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import Case

FAMILIES = ("timeout", "rate_limit", "authz", "adversarial_error", "schema_drift")


def workload(path: Path | None) -> tuple[Case, ...]:
    """Return the tasks of a file, or the sample suite's over and over, 1,000 of them."""
    if path is not None:
        return load_suite(str(path)).cases
    cases = load_suite("sample").cases
    return (cases * (1000 // len(cases) + 1))[:1000]


def endless_case() -> Case:
    """Return a task of the crud world whose budget a benchmark cannot use up.

    All five fault families are armed on a tool that is never called: each looks at every call and
    lets it pass.
    """
    case = next(case for case in load_suite("sample").cases if case.task.world == "crud")
    seat = SeatSpec(instruction="", budget=Budget(steps=10**9, calls=10**9, retries=10**9))
    accounts: JsonObject = {
        f"acct{number}": {"id": f"acct{number}", "tier": "basic"} for number in range(5)
    }
    plan = tuple(
        FaultRule(index, family, {"on_tool": "other"}) for index, family in enumerate(FAMILIES)
    )
    task = replace(case.task, initial_state={"accounts": accounts}, fault_plan=plan, seats=(seat,))
    return replace(case, task=task)
