"""Fault family ``schema_change``: a tool changes its interface, and the tool list shows it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult, ToolSpec
from fumehood.layers.faults.family import BoundFault, described, payload_of
from fumehood.layers.faults.schema_drift import SchemaDrift, SchemaDriftPayload


@dataclass(frozen=True, slots=True)
class SchemaChangePayload(SchemaDriftPayload):
    """How the interface changes, and when."""

    after_n_calls: int = field(
        default=0,
        metadata=described("Number of calls in the episode before the change.", minimum=0),
    )


class SchemaChange(SchemaDrift):
    """Like ``schema_drift``, from a call on; agents that list the tools again see the change."""

    order = 510
    payload = SchemaChangePayload
    example: ClassVar[JsonObject] = {"rename_args": {"path": "file_path"}}
    remedy = "Get the task again, which lists the tools, or read the actual arguments in the error."
    check = "Require the effect; the old arguments never have it."

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._after_n_calls = payload_of(fault.rule, SchemaChangePayload).after_n_calls
        self._calls = 0

    def show_tool(self, tool: ToolSpec) -> ToolSpec:
        """Return the tool with its interface now."""
        if self._calls < self._after_n_calls:
            return tool
        return replace(tool, parameters=self.changed_schema(tool.parameters))

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a call before the change, treat a later one like ``schema_drift``."""
        self._calls = max(self._calls, call.number)
        if call.number <= self._after_n_calls:
            return forward(call)
        return super().around(call, forward)
