"""The suite argument ``agentdojo[:VERSION][:SUITE…][:injections | :attack=NAME]``, in any order."""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.core.errors import InputError

VERSIONS = ("v1.2.2", "v1.2.1", "v1.2", "v1.1.2", "v1.1.1", "v1.1", "v1")
"""Newest first; the first is meant where none is named."""
SUITES = ("workspace", "travel", "banking", "slack")
ATTACKS = ("direct", "ignore_previous", "system_message", "injecagent", "important_instructions")
"""Those of AgentDojo that ask no model."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What is to be loaded."""

    version: str
    suites: tuple[str, ...]
    attack: str | None
    """Every user task with every injection task, by this attack; None for user tasks alone."""
    injections: bool
    """Injection tasks as if a user asked for them."""


def read_argument(text: str) -> Argument:
    """Return what the argument says.

    Raises:
        InputError: a part of it is nothing of that.
    """
    parts = [part for part in text.split(":") if part]
    attacks = [part.removeprefix("attack=") for part in parts if part.startswith("attack=")]
    known = {*VERSIONS, *SUITES, "injections", *(f"attack={name}" for name in ATTACKS)}
    for part in parts:
        if part not in known:
            raise InputError(
                f"agentdojo: {part!r} is no version ({', '.join(VERSIONS)}), no suite ({', '.join(SUITES)}), "
                f"not 'injections', and no attack=NAME ({', '.join(ATTACKS)})"
            )
    version = next((part for part in parts if part in VERSIONS), VERSIONS[0])
    suites = tuple(name for name in SUITES if name in parts) or SUITES
    if attacks and "injections" in parts:
        raise InputError("agentdojo: either injections as tasks, or attack=NAME on user tasks")
    return Argument(version, suites, attacks[0] if attacks else None, "injections" in parts)
