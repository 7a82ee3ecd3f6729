"""A world that records BFCL's single-turn calls."""

from __future__ import annotations

from fumehood.benchmarks.bfcl.package import tools_of
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec, Value


class BfclCalls:
    """State: ``functions``, documents of BFCL, and ``calls``, made so far."""

    toolset_id = "bfcl_v4_calls"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Take the state over.

        Raises:
            SpecError: there are no functions.
        """
        functions = state.get("functions")
        if not isinstance(functions, list):
            raise SpecError("initial_state.functions", "must be a list of documents")
        self._calls: list[Json] = []
        self.state = {**state, "calls": self._calls}
        self._tools = tools_of([each for each in functions if isinstance(each, dict)])
        self.revision = 0

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the functions."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Keep the call."""
        self.revision += 1
        self._calls.append({"name": call.tool_name, "arguments": copy_object(call.arguments)})
        return Value({"status": "noted"})
