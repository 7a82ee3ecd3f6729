"""Deterministic choices for generators: the same name gives the same choices on every machine and
Python version."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from random import Random
from typing import TypeVar

from fumehood.core.json_values import canonical_json

T = TypeVar("T")


class SeededChoices:
    """Choices that depend on a name only.

    Uses only ``Random.random()``: Python guarantees its sequence for a seed across versions.
    """

    def __init__(self, *name: str | int) -> None:
        """Start the sequence of ``name``."""
        digest = sha256(canonical_json(list(name)).encode("ascii")).digest()
        self._random = Random(int.from_bytes(digest, "big")).random

    def below(self, bound: int) -> int:
        """Return an integer ``n`` with ``0 <= n < bound``."""
        return int(self._random() * bound)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of ``choices``."""
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """Return ``count`` distinct elements of ``choices`` in the order of the draws."""
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def shuffled(self, choices: Sequence[T]) -> list[T]:
        """Return all elements of ``choices`` in a random order."""
        return self.some(choices, len(choices))
