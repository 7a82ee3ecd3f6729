"""Selects tasks of a suite and changes their budgets, before the run is planned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from random import Random

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, nearest
from fumehood.core.ledger import BudgetKind
from fumehood.core.task import Case, Suite, Task
from fumehood.orchestrator.config import BudgetChange, Counterpart, TaskSelection

SCALED = (BudgetKind.STEPS, BudgetKind.CALLS, BudgetKind.RETRIES)
"""Budget kinds that ``scale`` multiplies."""


def selected(suite: Suite, selection: TaskSelection | None) -> Suite:
    """Return the suite with the selected tasks, in the order of the suite.

    Args:
        suite: all tasks of the benchmark.
        selection: names, tags and number of tasks; None selects all tasks.

    Raises:
        InputError: no task is selected, or there are fewer tasks than ``sample``.
    """
    if selection is None:
        return suite
    cases = [case for case in suite.cases if _matches(case.task, selection)]
    if not cases:
        raise InputError(
            f"tasks: {suite.name} has no {_wanted(selection)}; {_hint(suite, selection)}"
        )
    if selection.sample is not None:
        if selection.sample > len(cases):
            raise InputError(f"tasks.sample: {suite.name} has only {len(cases)} such tasks")
        drawn = Random(selection.sample_seed).sample(range(len(cases)), selection.sample)
        cases = [cases[at] for at in sorted(drawn)]
    return replace(suite, cases=tuple(cases[: selection.limit]))


def with_counterparts(suite: Suite, seats: Mapping[str, Counterpart]) -> Suite:
    """Return the suite with a counterpart at each seat to which the run gives an agent.

    Calls of this agent are not those of the tested one, and changes of budgets and instructions do
    not concern it.
    """

    def changed(case: Case) -> Case:
        named = {
            seat.name: seats[seat.name].agent for seat in case.task.seats[1:] if seat.name in seats
        }
        counterparts = {**named, **case.task.counterparts}
        return replace(case, task=replace(case.task, counterparts=counterparts)) if named else case

    return replace(suite, cases=tuple(map(changed, suite.cases)))


def with_budget(suite: Suite, change: BudgetChange | None) -> Suite:
    """Return the suite with changed budgets of the seats of the tested agent.

    ``scale`` multiplies the bounds of the task; a bound that ``change`` states replaces its own.
    """
    if change is None:
        return suite
    bounds = change.model_dump(exclude={"scale"}, exclude_none=True)
    return replace(
        suite, cases=tuple(_with_bounds(case, change.scale, bounds) for case in suite.cases)
    )


def _matches(task: Task, selection: TaskSelection) -> bool:
    named = any(fnmatchcase(task.task_id, pattern) for pattern in selection.names)
    return named and all(
        any(fnmatchcase(value, pattern) for value in _values(task, tag))
        for tag, pattern in selection.tags.items()
    )


def _values(task: Task, tag: str) -> list[str]:
    """Return the values of a tag as texts: those of a list, or the only one."""
    value = task.tags.get(tag, "")
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _wanted(selection: TaskSelection) -> str:
    names = " or ".join(map(repr, selection.names))
    tags = " and ".join(f"{tag}={pattern}" for tag, pattern in selection.tags.items())
    return f"task {names}" + (f" with {tags}" if tags else "")


def _hint(suite: Suite, selection: TaskSelection) -> str:
    known = sorted({tag for case in suite.cases for tag in case.task.tags})
    for tag, pattern in selection.tags.items():
        if tag not in known:
            return f"tasks.tags: {tag!r}: {nearest(tag, known) if known else 'it has no tags'}"
        values = sorted({value for case in suite.cases for value in _values(case.task, tag)})
        if not any(fnmatchcase(value, pattern) for value in values):
            return f"tasks.tags.{tag}: {pattern!r}: {nearest(pattern, values)}"
    names = [case.task.task_id for case in suite.cases]
    near = get_close_matches(selection.names[0], names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"its tasks are, for example: {', '.join(names[:3])}"


def _with_bounds(case: Case, scale: float | None, bounds: Mapping[str, int]) -> Case:
    task = case.task
    seats = tuple(
        seat if seat.name in task.counterparts else _changed(seat, scale, bounds)
        for seat in task.seats
    )
    return replace(case, task=replace(task, seats=seats))


def _changed(seat: SeatSpec, scale: float | None, bounds: Mapping[str, int]) -> SeatSpec:
    own_bounds = {kind: seat.budget[kind] for kind in SCALED}
    scaled = {
        kind.value: math.ceil(limit * scale)
        for kind, limit in own_bounds.items()
        if limit is not None and scale is not None
    }
    return replace(seat, budget=seat.budget.with_limits(**{**scaled, **bounds}))
