"""What a record says about tools has to be about the tools of its world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fumehood.benchmarks.native.criteria import CalledBefore, Criterion, TriedAny
from fumehood.benchmarks.native.faults import SchemaDriftFault
from fumehood.benchmarks.native.record import TaskRecord
from fumehood.benchmarks.validation_errors import nearest
from fumehood.core.errors import SpecError
from fumehood.core.json_values import copy_object
from fumehood.core.tools import ToolSpec
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
        if isinstance(fault, SchemaDriftFault):
            _refuse_idle_drift(fault, index, tools)


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


def _refuse_idle_drift(fault: SchemaDriftFault, index: int, tools: Mapping[str, ToolSpec]) -> None:
    """Refuse a drift of arguments that no call has: it would change nothing and look like a fault."""
    struck = [tool for name, tool in tools.items() if fault.trigger.on_tool in (None, name)]
    arguments = {name for tool in struck for name in _properties(tool)}
    payload, where = fault.payload, f"fault_plan[{index}].payload"
    _refuse_unknown(payload.rename_args, arguments, f"{where}.rename_args")
    renamed = arguments - payload.rename_args.keys() | set(payload.rename_args.values())
    _refuse_unknown(payload.type_changes, renamed, f"{where}.type_changes")
    if not (payload.rename_args or payload.type_changes or payload.add_required):
        raise SpecError(where, "changes nothing; give rename_args, type_changes or add_required")


def _refuse_unknown(names: Mapping[str, object], known: set[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise SpecError(
                f"{where}.{name}", f"no tool has this argument; {nearest(name, _ordered(known))}"
            )


def _ordered(names: set[str]) -> Sequence[str]:
    return sorted(names)


def _properties(tool: ToolSpec) -> Mapping[str, object]:
    properties = tool.parameters.get("properties", {})
    return properties if isinstance(properties, dict) else {}
