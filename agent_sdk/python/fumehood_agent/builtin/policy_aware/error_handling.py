"""What an error means for whoever sent the call.

The details are read before the code, and the message is never read: a word is easily wrong, and a
sentence may be there to mislead, while what an error carries along rarely is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from fumehood_agent.builtin.policy_aware.repair import fits, mended
from fumehood_agent.observation import Problem, ToolSchema
from fumehood_agent.seat import JsonObject


class Trouble(Enum):
    """The kinds of trouble a call meets."""

    ALTERED = "altered"
    """What was looked at is not what was meant, so the answer says nothing about what was meant."""
    BUSY = "busy"
    """Too many calls for now."""
    DENIED = "denied"
    """The caller may not do this."""
    FIELD_ERROR = "misfit"
    """The tool asks for other arguments, and says which."""
    SETTLED = "settled"
    """The tool looked and said no; it will say so again."""
    SILENT = "silent"
    """No answer in time."""
    UNKNOWN = "unknown"
    """None of these."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of one tool, in the three forms its arguments can have."""

    meant: JsonObject
    """What the plan asks for."""
    sent: JsonObject
    """The same after mending."""
    recorded: JsonObject
    """What the transcript shows."""


_BY_DETAIL: Mapping[str, Trouble] = {
    "required_role": Trouble.DENIED,
    "retry_after_ms": Trouble.BUSY,
    "timeout_ms": Trouble.SILENT,
    "missing": Trouble.FIELD_ERROR,
    "unknown": Trouble.FIELD_ERROR,
    "expected": Trouble.FIELD_ERROR,
}

_BY_CODE: Mapping[str, Trouble] = {
    "authz_denied": Trouble.DENIED,
    "rate_limited": Trouble.BUSY,
    "timeout": Trouble.SILENT,
    "unknown_tool": Trouble.SETTLED,
    "invalid_argument": Trouble.SETTLED,
    "not_found": Trouble.SETTLED,
    "already_exists": Trouble.SETTLED,
    "invalid_cron": Trouble.SETTLED,
}


def trouble_of(problem: Problem, call: Attempt, schema: ToolSchema) -> Trouble:
    """Return what ``problem`` means.

    Args:
        problem: the error.
        call: what was refused.
        schema: of the tool that was called, as published.
    """
    trouble = _named(problem)
    if trouble is Trouble.FIELD_ERROR:
        missing = problem["details"].get("missing")
        if call.sent != call.meant and missing and all(name in call.meant for name in missing):
            # The change that was asked for a moment ago is not wanted any more.
            return Trouble.ALTERED
        if mended(call.sent, problem, schema) == call.sent:
            # It complains of something that is not so, or of something that cannot be helped.
            return Trouble.ALTERED if fits(call.sent, schema) else Trouble.SETTLED
    if trouble in {Trouble.SETTLED, Trouble.UNKNOWN} and call.recorded != call.sent:
        return Trouble.ALTERED
    return trouble


def _named(problem: Problem) -> Trouble:
    for detail, trouble in _BY_DETAIL.items():
        if detail in problem["details"]:
            return trouble
    return _BY_CODE.get(problem["code"], Trouble.UNKNOWN)
