"""How the simulators say no."""

from __future__ import annotations

from fumehood.core.tools import Failure, FailureKind


def refuse(code: str, message: str) -> Failure:
    """Return a tool's own refusal, without details, as the reference gives them (spec part 2)."""
    return Failure(FailureKind.WORLD, code, message)
