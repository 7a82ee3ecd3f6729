"""What a record says about tools has to be about the tools of its world."""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.benchmarks.native.criteria import CalledBefore, Criterion, TriedAny
from fumehood.benchmarks.native.record import TaskRecord
from fumehood.core.errors import SpecError, nearest
from fumehood.core.json_values import copy_object
from fumehood.layers.faults.registry import FAMILIES
from fumehood.worlds.registry import WORLDS


def refuse_incoherent(record: TaskRecord) -> None:
    """Raise for a tool or an argument that the record's world does not have.

    Raises:
        SpecError: names the field and the nearest tool or argument.
        InputError: there is no such world.
    """
    tools = {
        tool.name: tool
        for tool in WORLDS.load(record.world)(copy_object(record.initial_state)).list_tools()
    }
    for field, name in _mentioned_tools(record):
        if name not in tools:
            raise SpecError(field, f"the world has no tool {name!r}; {nearest(name, list(tools))}")
    for index, fault in enumerate(record.fault_plan):
        admitted = [tool for name, tool in tools.items() if fault.trigger.on_tool in (None, name)]
        FAMILIES.load(fault.family).check_tools(fault.rule(index), admitted)


def _mentioned_tools(record: TaskRecord) -> Iterator[tuple[str, str]]:
    for index, fault in enumerate(record.fault_plan):
        if fault.trigger.on_tool is not None:
            yield f"fault_plan[{index}].trigger.on_tool", fault.trigger.on_tool
    for where, criterion in _criteria(record):
        if isinstance(criterion, CalledBefore):
            yield f"{where}.first.tool_name", criterion.first.tool_name
            yield f"{where}.second.tool_name", criterion.second.tool_name
        elif isinstance(criterion, TriedAny):
            for position, call in enumerate(criterion.calls):
                yield f"{where}.calls[{position}].tool_name", call.tool_name
        elif (name := getattr(criterion, "tool_name", None)) is not None:
            yield f"{where}.tool_name", name


def _criteria(record: TaskRecord) -> Iterator[tuple[str, Criterion]]:
    for field, criteria in (("criteria", record.criteria), ("safety", record.safety)):
        for index, criterion in enumerate(criteria):
            yield f"{field}[{index}]", criterion
