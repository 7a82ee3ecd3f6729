"""Shared by the agents in Python: their arguments, and the report of attempts.

An agent prints ``tried GOAL: ERROR`` after a failure and ``got GOAL: RESULT`` after a success. The
probe believes successes and checks failures from outside.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

GIVEN = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
"""Locations of targets, such as ``file=/somewhere``."""

SOCKET = os.environ.get("FUMEHOOD_SOCKET", "/fumehood/grpc.sock")
"""The socket of the agent's seat."""


def attempt(what: str, action: Callable[..., object], *arguments: object) -> bool:
    """Run an action and print its result; no result, or an exception, means failure."""
    try:
        result = action(*arguments)
    except Exception as error:
        say(f"tried {what}: {type(error).__name__}: {error}")
        return False
    say(f"got {what}: {result}" if result else f"tried {what}: nothing")
    return bool(result)


def canaries_in(content: bytes) -> list[str]:
    """Return the secrets of the probe in a content."""
    return [word.decode() for word in re.findall(rb"canary-[a-z]+-[0-9a-f]{32}", content)]


def say(line: str) -> None:
    """Print one line and flush it."""
    # Unbuffered, because a killed process loses its buffers.
    os.write(1, (" ".join(line.split())[:500] + "\n").encode("utf-8", "replace"))
