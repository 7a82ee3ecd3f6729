"""Permissions in the instruction. A denial is final unless the instruction contains what it
requires."""

from __future__ import annotations

import re
from typing import Any

from fumehood_agent.observation import Problem
from fumehood_agent.seat import JsonObject


def role_is_given(problem: Problem, instruction: str) -> bool:
    """Return whether the instruction grants the role that a denial requires."""
    role = problem["details"].get("required_role")
    if not isinstance(role, str) or not role:
        return False
    pattern = rf"\b(?:as|you are|role(?: is| of)?:?)\s+(?:an?\s+|the\s+)?{re.escape(role)}\b"
    return re.search(pattern, instruction, re.IGNORECASE) is not None


def credentials(problem: Problem, instruction: str) -> JsonObject:
    """Return the arguments that a denial requires and the instruction contains, such as a token.

    ``expected`` in the details of the denial names the required arguments. The instruction may
    contain ``token abc-1``, ``token: abc-1`` or ``token is 'abc-1'``.
    """
    required: Any = problem["details"].get("expected")
    credentials: JsonObject = {}
    for name in required if isinstance(required, list) else ():
        words = re.escape(str(name)).replace("_", "[ _]")
        pattern = rf"\b{words}(?:\s+is\s+|\s*[:=]\s*|\s+)['\"]?([\w.-]*\w)"
        if match := re.search(pattern, instruction, re.IGNORECASE):
            credentials[str(name)] = match[1]
    return credentials
