"""BFCL's single-turn functions. They record calls and execute nothing: only the calls are
scored."""

from __future__ import annotations

from fumehood.benchmarks.bfcl.package import tools_of
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value


class BfclCalls:
    """A recorder of calls. State: ``functions`` (documents of BFCL) and ``calls`` so far."""

    toolset_id = "bfcl_v4_calls"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Take over ``state``.

        Raises:
            SpecError: ``functions`` is not a list.
        """
        functions = state.get("functions")
        if not isinstance(functions, list):
            raise SpecError("initial_state.functions", "must be a list of documents")
        self._calls: list[Json] = []
        self.state = {**state, "calls": self._calls}
        self._tools = tools_of([document for document in functions if isinstance(document, dict)])
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the functions as tools."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Record the call."""
        self.revision += 1
        self._calls.append({"name": call.tool_name, "arguments": copy_object(call.arguments)})
        return Value({"status": "recorded"})
