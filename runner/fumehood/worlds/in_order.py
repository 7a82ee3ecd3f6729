"""A set that keeps the order in which it was filled, for simulators of others that show what is in one.

Python's own order of texts is drawn anew for every process, so that nobody can send keys that collide; with
it one episode would tell two stories.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from types import ModuleType


class OrderedSet(dict[Hashable, None]):
    """As much of a set as they use."""

    def __init__(self, members: Iterable[Hashable] = ()) -> None:
        super().__init__(dict.fromkeys(members))

    def __sub__(self, others: Container[Hashable]) -> OrderedSet:
        """Return what is not among the others."""
        return OrderedSet(each for each in self if each not in others)


def keep_order(module: ModuleType) -> None:
    """Have the functions of a module make such sets where they call ``set``."""
    vars(module)["set"] = OrderedSet
