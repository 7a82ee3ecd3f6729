"""What a model is told again with every question, and what is left out when that grows too long.

The rule: a tool's answer is cut at its end beyond ``RESULT_CHARS_MAX``. When the whole conversation, as JSON,
is longer than ``CONTEXT_CHARS_MAX``, its oldest turns go, each whole, until it fits; what to do, the newest
turn and a line that says how many are missing always stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fumehood_agent.seat import JsonObject

RESULT_CHARS_MAX = 16_000
CONTEXT_CHARS_MAX = 96_000


class Context:
    """A conversation of turns: what the model said, and what came of it."""

    def __init__(
        self,
        *opening: JsonObject,
        chars_max: int = CONTEXT_CHARS_MAX,
        result_chars_max: int = RESULT_CHARS_MAX,
    ) -> None:
        """Begin.

        Args:
            opening: messages that always stay.
            chars_max: of the whole conversation, as JSON.
            result_chars_max: of one tool's answer.
        """
        self._opening = opening
        self._chars_max = chars_max
        self._result_chars_max = result_chars_max
        self._turns: list[list[JsonObject]] = []
        self._gone = 0

    def add_turn(self, *messages: JsonObject) -> None:
        """Put a turn at the end: the model's words, then what it is told about them."""
        self._turns.append(list(messages))
        while len(self._turns) > 1 and len(json.dumps(self.messages())) > self._chars_max:
            del self._turns[0]
            self._gone += 1

    def messages(self) -> Sequence[JsonObject]:
        """Return the conversation."""
        note = (
            [{"role": "user", "content": f"[{self._gone} earlier turns left out]"}]
            if self._gone
            else []
        )
        return [*self._opening, *note, *(message for turn in self._turns for message in turn)]

    def cut(self, text: str) -> str:
        """Return a tool's answer, cut at its end where it is too long."""
        if len(text) <= self._result_chars_max:
            return text
        return f"{text[: self._result_chars_max]}\n[{len(text) - self._result_chars_max} characters left out]"
