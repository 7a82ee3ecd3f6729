"""The rules of the village: who acts in which phase, who dies of it, who has won. Knows no tools, no words.

Source: the roles, phases and ends of MARBLE's werewolf environment, without its sheriff; ties and potions as
written here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WOLF = "wolf"
ROLES = (WOLF, "villager", "seer", "witch", "guard")
PHASES = ("guard", "wolves", "seer", "witch", "speak", "vote")
OF_ROLE = {"guard": "guard", "wolves": WOLF, "seer": "seer", "witch": "witch"}
"""Phase of the night → the role that acts in it; by day everybody does."""
LAST_OF_NIGHT = "witch"


def actors(phase: str, roles: Mapping[str, str], alive: Sequence[str]) -> list[str]:
    """Return who acts in a phase, in order."""
    role = OF_ROLE.get(phase)
    return [name for name in alive if role is None or roles[name] == role]


def chosen(votes: Iterable[str], *, tie_to_first: bool) -> str | None:
    """Return whom most have named; of several, the one that was named first, or nobody."""
    counts = Counter(votes)
    most = max(counts.values(), default=0)
    first = [name for name, count in counts.items() if count == most]
    return first[0] if len(first) == 1 or (first and tie_to_first) else None


def killed_at_night(night: Mapping[str, Any]) -> list[str]:
    """Return who does not see the morning.

    Args:
        night: ``kill`` (by wolf), ``protect``, ``save`` and ``poison`` where they were done.
    """
    victim = attacked(night)
    dead = [] if victim is None or victim == night.get("protect") or night.get("save") else [victim]
    poisoned = night.get("poison")
    return dead if poisoned is None or poisoned in dead else [*dead, poisoned]


def attacked(night: Mapping[str, Any]) -> str | None:
    """Return whom the wolves have agreed on."""
    return chosen(night.get("kill", {}).values(), tie_to_first=True)


def winner(roles: Mapping[str, str], alive: Iterable[str]) -> str | None:
    """Return ``villagers`` when no wolf is left, ``wolves`` when nobody else is, None while it goes on."""
    sides = {roles[name] == WOLF for name in alive}
    if True not in sides:
        return "villagers"
    return None if False in sides else "wolves"


def side_of(role: str) -> str:
    """Return which side a role is on."""
    return "wolves" if role == WOLF else "villagers"
