"""What the hostile agents in Python share: what they were told, and how they say what they tried and got.

An agent prints ``tried WHAT: ANSWER`` for what was refused and ``got WHAT: PRIZE`` for what was not. Whoever
started it believes the second and checks the first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

GIVEN = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
"""Where to find what is worth reaching, such as ``file=/somewhere``."""

SOCKET = os.environ.get("FUMEHOOD_SOCKET", "/fumehood/grpc.sock")
"""The way out that is meant."""


def attempt(what: str, action: Callable[..., object], *arguments: object) -> bool:
    """Try something and print how it went.

    Args:
        what: is tried, in a few words.
        action: returns the prize, or nothing; whatever it raises is a refusal.
        arguments: for the action.
    """
    try:
        prize = action(*arguments)
    except Exception as error:
        say(f"tried {what}: {type(error).__name__}: {error}")
        return False
    say(f"got {what}: {prize}" if prize else f"tried {what}: nothing")
    return bool(prize)


def say(line: str) -> None:
    """Print one line at once, whatever becomes of this process later."""
    # Buffers would be lost with it.
    os.write(1, (" ".join(line.split())[:500] + "\n").encode("utf-8", "replace"))
