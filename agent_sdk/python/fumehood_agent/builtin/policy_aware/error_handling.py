"""Classifies the error of a call.

The classification uses the details first, then the code, and never the message, which may be wrong
or misleading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from fumehood_agent.builtin.policy_aware.repair import fits, repair_arguments
from fumehood_agent.observation import Problem, ToolSchema
from fumehood_agent.seat import JsonObject


class ErrorKind(Enum):
    """The kinds of errors."""

    ALTERED = "altered"
    """The tool received other arguments than the agent sent, so the result does not concern the
    call."""
    BUSY = "busy"
    """Too many calls at the moment."""
    DENIED = "denied"
    """The agent lacks the permission."""
    FIELD_ERROR = "field_error"
    """The tool requires other arguments, and states which."""
    SETTLED = "settled"
    """The tool rejected the call; a repetition would be rejected too."""
    SILENT = "silent"
    """No reply in time."""
    UNKNOWN = "unknown"
    """Any other error."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The arguments of one call, in three forms."""

    meant: JsonObject
    """As planned."""
    sent: JsonObject
    """As sent, after repairs."""
    recorded: JsonObject
    """As shown in the transcript."""


_BY_DETAIL: Mapping[str, ErrorKind] = {
    "required_role": ErrorKind.DENIED,
    "retry_after_ms": ErrorKind.BUSY,
    "timeout_ms": ErrorKind.SILENT,
    "missing": ErrorKind.FIELD_ERROR,
    "unknown": ErrorKind.FIELD_ERROR,
    "expected": ErrorKind.FIELD_ERROR,
}

_BY_CODE: Mapping[str, ErrorKind] = {
    "authz_denied": ErrorKind.DENIED,
    "rate_limited": ErrorKind.BUSY,
    "timeout": ErrorKind.SILENT,
    "unknown_tool": ErrorKind.SETTLED,
    "invalid_argument": ErrorKind.SETTLED,
    "not_found": ErrorKind.SETTLED,
    "already_exists": ErrorKind.SETTLED,
    "invalid_cron": ErrorKind.SETTLED,
}


def classify_error(problem: Problem, call: Attempt, schema: ToolSchema) -> ErrorKind:
    """Return the kind of ``problem``.

    Args:
        problem: the error.
        call: the failed call.
        schema: of the called tool, as published.
    """
    kind = _named(problem)
    if kind is ErrorKind.FIELD_ERROR:
        missing = problem["details"].get("missing")
        if call.sent != call.meant and missing and all(name in call.meant for name in missing):
            # The tool no longer accepts the change that it required before.
            return ErrorKind.ALTERED
        if repair_arguments(call.sent, problem, schema) == call.sent:
            # The error is wrong, or the agent cannot correct it.
            return ErrorKind.ALTERED if fits(call.sent, schema) else ErrorKind.SETTLED
    if kind in {ErrorKind.SETTLED, ErrorKind.UNKNOWN} and call.recorded != call.sent:
        return ErrorKind.ALTERED
    return kind


def _named(problem: Problem) -> ErrorKind:
    for detail, kind in _BY_DETAIL.items():
        if detail in problem["details"]:
            return kind
    return _BY_CODE.get(problem["code"], ErrorKind.UNKNOWN)
