"""Checks a call with the incomplete rules of ToolMisuseBench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from fumehood.core.json_values import Json
from fumehood.core.tools import Failure, FailureKind, Forward, ToolCall, ToolResult, ToolSpec

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
"""A boolean passes as a number, because the reference uses Python's isinstance."""


@dataclass(frozen=True, slots=True)
class _Signature:
    required: tuple[str, ...]
    types: dict[str, str]
    closed: bool


class ValidateLoosely:
    """Validates with the rules and in the order of the reference: tool, missing, unknown, types.

    Source: docs/reference/toolmisuse.md, Validation.
    """

    def __init__(self, toolset_id: str, tools: tuple[ToolSpec, ...]) -> None:
        self._toolset_id = toolset_id
        self._signatures = _signatures(tools)

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward a valid call, reject an invalid one."""
        signature = self._signatures.get(call.tool_name)
        if signature is None:
            return _invalid(
                "unknown_tool",
                f"Tool '{call.tool_name}' is not available in toolset '{self._toolset_id}'.",
                {"toolset_id": self._toolset_id, "tool_name": call.tool_name},
            )
        return _rejection(signature, call) or forward(call)


def _rejection(signature: _Signature, call: ToolCall) -> Failure | None:
    arguments = call.arguments
    missing: list[Json] = [name for name in signature.required if name not in arguments]
    if missing:
        details: dict[str, Json] = {"missing": missing, "tool_name": call.tool_name}
        return _invalid("missing_required_arg", "Action is missing required arguments.", details)
    unknown: list[Json] = [name for name in arguments if name not in signature.types]
    if unknown and signature.closed:
        details = {"unknown": unknown, "tool_name": call.tool_name}
        return _invalid("unknown_argument", "Action contains unknown arguments.", details)
    for name, value in arguments.items():
        expected = signature.types.get(name, "")
        kinds = _PYTHON_TYPES.get(expected)
        if kinds is not None and not isinstance(value, kinds):
            details = {
                "tool_name": call.tool_name,
                "arg": name,
                "expected": expected,
                "received": type(value).__name__,
            }
            return _invalid("invalid_argument_type", "Argument type mismatch.", details)
    return None


def _invalid(code: str, message: str, details: dict[str, Json]) -> Failure:
    return Failure(FailureKind.INVALID_CALL, code, message, details)


@lru_cache(maxsize=256)
def _signatures(tools: tuple[ToolSpec, ...]) -> Mapping[str, _Signature]:
    # Many episodes share a few toolsets.
    return {tool.name: _signature(tool) for tool in tools}


def _signature(tool: ToolSpec) -> _Signature:
    schema = tool.parameters
    properties, required = schema.get("properties", {}), schema.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    types = {
        name: str(prop.get("type", "")) if isinstance(prop, dict) else ""
        for name, prop in properties.items()
    }
    return _Signature(
        tuple(str(name) for name in required),
        types,
        schema.get("additionalProperties", True) is False,
    )
