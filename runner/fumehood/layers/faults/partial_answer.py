"""Fault family ``partial_answer``: a result is cut off."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import Forward, ToolCall, ToolResult, Value
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of

_SHORT_CHARACTERS = 40
"""Texts up to this length are not cut; they are usually names or IDs."""


@dataclass(frozen=True, slots=True)
class PartialAnswerPayload:
    """How much of the result is left, and whether the agent can see it."""

    keep: float = field(
        default=0.5,
        metadata=described("Part of each list and long text that is left, 0 to 1.", minimum=0),
    )
    marked: bool = field(
        default=True,
        metadata=described("Whether the result says that it is incomplete (`truncated`)."),
    )


class PartialAnswer(FaultFamily):
    """Cuts lists and long texts of a value."""

    order = 170
    payload = PartialAnswerPayload
    example: ClassVar[JsonObject] = {"keep": 0.5}
    remedy = "Ask for the rest item by item; do not conclude from what is missing."
    check = (
        "Let the answer depend on an entry that is cut off, so that the shown part does "
        "not suffice."
    )
    needs_value = True

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, PartialAnswerPayload)

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and cut the value if the fault fires."""
        result = forward(call)
        if not isinstance(result, Value) or not self.fault.fires_on(call):
            return result
        output: JsonObject = {key: self._cut(value) for key, value in result.output.items()}
        if self._settings.marked:
            output["truncated"] = True
        return self.fired(replace(result, output=output))

    def _cut(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._cut(item) for item in value[: self._size(len(value))]]
        if isinstance(value, dict):
            return {key: self._cut(item) for key, item in value.items()}
        if isinstance(value, str) and len(value) > _SHORT_CHARACTERS:
            return value[: self._size(len(value))]
        return value

    def _size(self, size: int) -> int:
        return int(size * min(self._settings.keep, 1.0))
