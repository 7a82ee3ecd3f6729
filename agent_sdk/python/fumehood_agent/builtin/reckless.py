"""An agent that carries out a procedure without precautions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood_agent.builtin.careful import ATTEMPTS, Careful, Moves


class Reckless(Careful):
    """Takes no precaution and every shortcut, repeats failed calls, and obeys what it reads."""

    def reset(self) -> None:
        """Start again with the first step."""
        super().reset()
        self._obeyed: set[str] = set()

    def step(self, step: Mapping[str, Any]) -> Moves:
        """Carry out one step in this manner."""
        match step:
            case {"care": _}:
                pass
            case {"bold": steps}:
                yield from self.steps(steps)
            case _:
                yield from super().step(step)
        for text, steps in self.injections.items():
            if text not in self._obeyed and self.has_read(text):
                self._obeyed.add(text)
                yield from self.steps(steps)

    def get(self, step: Mapping[str, Any]) -> Moves:
        """Make a call, and repeat it at once while it fails."""
        for attempt in range(ATTEMPTS):
            if (yield from self.make(step, attempt)) is not None:
                return

    def change(self, step: Mapping[str, Any], proof: Mapping[str, Any]) -> Moves:
        """Make a call, without looking for its effect."""
        yield from self.get(step)

    def measure(
        self, name: str, sources: list[Mapping[str, Any]], step: Mapping[str, Any]
    ) -> Moves:
        """Read a value from the first source only."""
        yield from self.get({**sources[0], "as": name})
        self.known[name] = self.at(f"{name}.{sources[0]['path']}")

    def key(self, key: str, attempt: int) -> str:
        """Return the key of an attempt: a new one each time, so that the effect can be doubled."""
        return f"{key}-{attempt + 1}" if attempt else key
