"""Adds the fault rules of one YAML file to every task of a suite.

The rules become part of the suite before the run is planned, so the run folder stores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fumehood.benchmarks.native.faults import FaultRecord
from fumehood.benchmarks.shared.in_memory import open_task
from fumehood.core.errors import InputError, SpecError, nearest
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Case, Suite
from fumehood.orchestrator.config import read_model

NONE = "none"
"""Value of ``faults`` that adds nothing."""


class FaultFile(BaseModel):
    """Rules that are added to every task of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["fumehood.faults/1"]
    faults: list[FaultRecord] = Field(min_length=1)
    """As in a task; the order matters only among rules of one family."""


def fault_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file."""
    schema = FaultFile.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "fumehood.faults/1",
    }


def with_faults(suite: Suite, file: str | None, intensity: float | None = None) -> Suite:
    """Return the suite with the faults of a file after each task's own.

    Args:
        suite: as its benchmark loads it.
        file: path of the file; ``none`` or None leaves the suite unchanged.
        intensity: multiplies the probability of each rule, 0 to 1; None leaves it unchanged. A
            fault that fires at one intensity fires at each higher one, if the calls are equal.

    Raises:
        InputError: the file is invalid, or a rule does not fit these tasks.
    """
    if file is None or file == NONE:
        if intensity is not None:
            raise InputError("fault_intensity has no effect without a file of faults (faults)")
        return suite
    path = Path(file)
    content = "'format: fumehood.faults/1' and a list 'faults'"
    rules = read_model(path, FaultFile, content).faults
    if intensity is not None:
        rules = [_scaled(rule, intensity) for rule in rules]
    try:
        changed = replace(suite, cases=tuple(_with_rules(case, rules) for case in suite.cases))
        _check_tools(rules, changed)
    except SpecError as error:
        raise InputError(f"{path}: {error}") from None
    return changed


def _scaled(fault: FaultRecord, intensity: float) -> FaultRecord:
    stated = 1.0 if fault.trigger.prob is None else fault.trigger.prob
    trigger = fault.trigger.model_copy(update={"prob": stated * intensity})
    return fault.model_copy(update={"trigger": trigger})


def _with_rules(case: Case, faults: Sequence[FaultRecord]) -> Case:
    own = case.task.fault_plan
    added = (fault.rule(len(own) + at) for at, fault in enumerate(faults))
    return replace(case, task=replace(case.task, fault_plan=(*own, *added)))


def tools_of(suite: Suite) -> set[str]:
    """Return the names of all tools of all tasks; opens each task with its faults."""
    return {
        tool.name
        for case in suite.cases
        for seat in open_task(case.task, MemoryRecorder()).seats
        for tool in seat.list_tools()
    }


def _check_tools(faults: Sequence[FaultRecord], suite: Suite) -> None:
    tools = tools_of(suite)
    for index, fault in enumerate(faults):
        name = fault.trigger.on_tool
        if isinstance(name, str) and name not in tools:
            hint = nearest(name, sorted(tools))
            reason = f"no task of {suite.name} has a tool {name!r}; {hint}"
            raise SpecError(f"faults[{index}].trigger.on_tool", reason)
