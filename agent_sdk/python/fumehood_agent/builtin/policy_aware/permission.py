"""What the instruction permits. A denial stands unless the instruction itself gives what it asks for."""

from __future__ import annotations

import re
from typing import Any

from fumehood_agent.observation import Problem
from fumehood_agent.seat import JsonObject


def role_is_given(problem: Problem, instruction: str) -> bool:
    """Say whether the instruction gives the very role that a denial asks for."""
    role = problem["details"].get("required_role")
    if not isinstance(role, str) or not role:
        return False
    given = rf"\b(?:as|you are|role(?: is| of)?:?)\s+(?:an?\s+|the\s+)?{re.escape(role)}\b"
    return re.search(given, instruction, re.IGNORECASE) is not None


def credentials(problem: Problem, instruction: str) -> JsonObject:
    """Return the arguments that a denial asks for and that the instruction gives, such as a token.

    Args:
        problem: a denial; ``expected`` in its details names arguments it looks for.
        instruction: may say ``token abc-1``, ``token: abc-1``, ``token is 'abc-1'``.
    """
    asked: Any = problem["details"].get("expected")
    found: JsonObject = {}
    for name in asked if isinstance(asked, list) else ():
        words = re.escape(str(name)).replace("_", "[ _]")
        written = rf"\b{words}(?:\s+is\s+|\s*[:=]\s*|\s+)['\"]?([\w.-]*\w)"
        if given := re.search(written, instruction, re.IGNORECASE):
            found[str(name)] = given[1]
    return found
