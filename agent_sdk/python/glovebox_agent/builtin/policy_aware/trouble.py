"""What an error means for whoever sent the call.

The details are read before the code, and the message is never read: a word is easily wrong, and a
sentence may be there to mislead, while what an error carries along rarely is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from glovebox_agent.builtin.schema_repair import cast_to
from glovebox_agent.observation import Problem, ToolSchema


class Trouble(Enum):
    """The kinds of trouble a call meets."""

    ALTERED = "altered"
    """What was looked at is not what was sent, so the answer says nothing about the call."""
    BUSY = "busy"
    """Too many calls for now."""
    DENIED = "denied"
    """The caller may not do this."""
    MISFIT = "misfit"
    """The arguments do not fit the tool."""
    SETTLED = "settled"
    """The tool looked and said no; it will say so again."""
    SILENT = "silent"
    """No answer in time."""
    UNKNOWN = "unknown"
    """None of these."""


_BY_DETAIL: Mapping[str, Trouble] = {
    "required_role": Trouble.DENIED,
    "retry_after_ms": Trouble.BUSY,
    "timeout_ms": Trouble.SILENT,
    "missing": Trouble.MISFIT,
    "unknown": Trouble.MISFIT,
    "expected": Trouble.MISFIT,
}

_BY_CODE: Mapping[str, Trouble] = {
    "authz_denied": Trouble.DENIED,
    "rate_limited": Trouble.BUSY,
    "timeout": Trouble.SILENT,
    "missing_required_arg": Trouble.MISFIT,
    "unknown_argument": Trouble.MISFIT,
    "invalid_argument_type": Trouble.MISFIT,
    "unknown_tool": Trouble.SETTLED,
    "not_found": Trouble.SETTLED,
    "already_exists": Trouble.SETTLED,
    "invalid_cron": Trouble.SETTLED,
}


def trouble_of(
    problem: Problem, sent: Mapping[str, Any], recorded: Mapping[str, Any], schema: ToolSchema
) -> Trouble:
    """Return what ``problem`` means.

    Args:
        problem: the error.
        sent: the arguments that were sent.
        recorded: the arguments that the transcript shows.
        schema: of the tool that was called.
    """
    trouble = _named(problem)
    if trouble is Trouble.MISFIT and fits(sent, schema):
        return Trouble.ALTERED
    if trouble in {Trouble.MISFIT, Trouble.SETTLED, Trouble.UNKNOWN} and dict(recorded) != dict(sent):
        return Trouble.ALTERED
    return trouble


def _named(problem: Problem) -> Trouble:
    for detail, trouble in _BY_DETAIL.items():
        if detail in problem["details"]:
            return trouble
    return _BY_CODE.get(problem["code"], Trouble.UNKNOWN)


def fits(arguments: Mapping[str, Any], schema: ToolSchema) -> bool:
    """Say whether ``arguments`` are what the published schema asks for."""
    properties = schema["properties"]
    if any(name not in arguments for name in schema["required"]):
        return False
    if not schema["additionalProperties"] and any(name not in properties for name in arguments):
        return False
    return all(_is_of_type(value, properties.get(name, {})) for name, value in arguments.items())


def _is_of_type(value: Any, schema: Mapping[str, Any]) -> bool:
    cast = cast_to(str(schema.get("type", "")), value)
    return bool(cast == value) and type(cast) is type(value)
