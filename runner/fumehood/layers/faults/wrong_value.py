"""Fault family ``wrong_value``: a result contains a wrong value, and nothing shows it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from fumehood.core.conditions import is_number, resolve
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import Forward, ToolCall, ToolResult, Value
from fumehood.layers.faults.family import BoundFault, FaultFamily, described, payload_of

_MISSING = (KeyError, IndexError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class WrongValuePayload:
    """Which value is wrong, and how."""

    path: str = field(
        default="result", metadata=described("Path of the value in the result, with dots.")
    )
    factor: float = field(
        default=1000.0,
        metadata=described("Factor of a wrong unit (1000) or sign (-1); used without `value`."),
    )
    value: Any = field(default=None, metadata=described("Value of another record, or any other."))


class WrongValue(FaultFamily):
    """Replaces one value of a result. It fires only on results that have the value."""

    order = 180
    payload = WrongValuePayload
    example: ClassVar[JsonObject] = {"path": "a", "value": 7}
    remedy = "Compare with a second source before an action that cannot be undone."
    check = "Let the state show the action on the wrong value, and vary which reading is wrong."
    needs_value = True

    def __init__(self, fault: BoundFault) -> None:
        super().__init__(fault)
        self._settings = payload_of(fault.rule, WrongValuePayload)
        if not self._settings.path:
            raise SpecError(fault.rule.location("payload", "path"), "must not be empty")

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call, and replace the value if the fault fires."""
        result = forward(call)
        if not isinstance(result, Value):
            return result
        changed = self._changed(result.output)
        if changed is None or not self.fault.fires_on(call):
            return result
        return self.fired(replace(result, output=changed))

    def _changed(self, output: JsonObject) -> JsonObject | None:
        """Return a copy with the wrong value; None if there is no such value."""
        above, _, key = self._settings.path.rpartition(".")
        copy = copy_object(output)
        try:
            container: Any = resolve(copy, above) if above else copy
            position = int(key) if isinstance(container, list) else key
            container[position] = self._wrong(container[position])
        except _MISSING:
            return None
        return None if copy == output else copy

    def _wrong(self, value: Json) -> Json:
        if self._settings.value is not None:
            wrong: Json = self._settings.value
            return wrong
        if not is_number(value):
            raise TypeError(value)
        product = value * self._settings.factor  # type: ignore[operator]
        return int(product) if isinstance(value, int) and product == int(product) else product
