"""Fault family ``extra_field``: results have one field more than the tool returns."""

from dataclasses import dataclass, field, replace

from fumehood.core.errors import SpecError
from fumehood.core.tools import Forward, ToolCall, ToolResult, Value
from fumehood.layers.faults.family import BoundFault, FaultFamily, described


@dataclass(frozen=True, slots=True)
class ExtraFieldPayload:
    """The payload in task files. Its JSON Schema and documentation are generated from here."""

    field: str = field(default="_debug", metadata=described("Name of the added field."))


class ExtraField(FaultFamily):
    """Adds a field to each result."""

    order = 150
    payload = ExtraFieldPayload
    remedy = "Ignore the field."
    check = "Require the task; no answer needs the field."

    def __init__(self, fault: BoundFault) -> None:
        """Read the payload.

        Raises:
            SpecError: ``field`` is not text.
        """
        super().__init__(fault)
        name = fault.rule.payload.get("field", "_debug")
        if not isinstance(name, str):
            raise SpecError(fault.rule.location("payload", "field"), "must be text")
        self._field = name

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Add the field to the value or to the details of the failure."""
        fires = self.fault.fires_on(call)
        result = forward(call)
        if not fires:
            return result
        if isinstance(result, Value):
            return self.fired(replace(result, output={**result.output, self._field: True}))
        return self.fired(replace(result, details={**result.details, self._field: True}))
