"""Named chance for generators: the same name gives the same choices on any machine and any Python."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from random import Random
from typing import TypeVar

from fumehood.core.json_values import canonical_json

T = TypeVar("T")


class Draws:
    """Choices that depend on a name and on nothing else.

    Only ``random()`` of Python's generator is used: of all its methods, that one's sequence is promised
    never to change.
    """

    def __init__(self, *name: str | int) -> None:
        """Begin the sequence that ``name`` stands for."""
        digest = sha256(canonical_json(list(name)).encode("ascii")).digest()
        self._random = Random(int.from_bytes(digest, "big")).random

    def below(self, bound: int) -> int:
        """Return a whole number from 0, less than ``bound``."""
        return int(self._random() * bound)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of ``choices``."""
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different ones of ``choices``, in the order in which they were drawn."""
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def shuffled(self, choices: Sequence[T]) -> list[T]:
        """Return all of ``choices`` in an order of their own."""
        return self.some(choices, len(choices))
