"""World ``counter``: one number that tools read and change."""

from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value

_NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
_ADD: JsonObject = {
    "type": "object",
    "properties": {"by": {"type": "integer"}},
    "required": ["by"],
    "additionalProperties": False,
}


class Counter:
    """State: ``count``, an integer of at least 0; default 0."""

    toolset_id = "counter_v1"

    def __init__(self, state: JsonObject) -> None:
        """Take over the state.

        Raises:
            SpecError: ``count`` is not a valid integer.
        """
        count = state.get("count", 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise SpecError("initial_state.count", "must be an integer of at least 0")
        self.state = state
        self.revision = 0
        self._count = count

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return both tools."""
        return (
            ToolSpec("read", _NO_ARGUMENTS, "Read the count."),
            ToolSpec("add", _ADD, "Add to the count."),
        )

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call. The layers have validated the arguments."""
        by = call.arguments.get("by", 0)
        if call.tool_name == "add" and isinstance(by, int):
            if self._count + by < 0:
                return Failure(FailureKind.WORLD, "below_zero", "The count must not be negative.")
            self._count += by
            self.state["count"] = self._count
            self.revision += 1
        return Value({"count": self._count})
