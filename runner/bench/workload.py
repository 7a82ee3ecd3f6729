"""What the benchmarks play."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runner.benchmarks.table import load_suite
from runner.core.episode_spec import SeatSpec
from runner.core.ledger import Budget
from runner.core.task import Case


def workload(path: Path | None) -> tuple[Case, ...]:
    """Return the tasks of a file, or the sample suite's over and over, 1,000 of them."""
    if path is not None:
        return load_suite(str(path)).cases
    cases = load_suite("sample").cases
    return (cases * (1000 // len(cases) + 1))[:1000]


def endless_case() -> Case:
    """Return a task of the crud world with one fault planned and a budget that a benchmark cannot use up."""
    case = next(case for case in load_suite("sample").cases if case.task.world == "crud")
    seat = SeatSpec(instruction="", budget=Budget(steps=10**9, calls=10**9, retries=10**9))
    state = {"accounts": {f"acct{number}": {"id": f"acct{number}", "tier": "basic"} for number in range(5)}}
    return replace(case, task=replace(case.task, initial_state=state, seats=(seat,)))
