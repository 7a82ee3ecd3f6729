"""The conversation with a model, and how it is shortened.

A tool result is cut at its end beyond ``RESULT_CHARS_MAX``. If the whole conversation, as JSON, is
longer than ``CONTEXT_CHARS_MAX``, its oldest turns are removed until it fits. The opening messages
and the newest turn always stay, and a line states how many turns were removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fumehood_agent.seat import JsonObject

RESULT_CHARS_MAX = 16_000
CONTEXT_CHARS_MAX = 96_000


class Context:
    """A conversation in turns: a message of the model, and the results of its calls."""

    def __init__(
        self,
        *opening: JsonObject,
        chars_max: int = CONTEXT_CHARS_MAX,
        result_chars_max: int = RESULT_CHARS_MAX,
    ) -> None:
        """Create the conversation.

        Args:
            opening: messages that always stay.
            chars_max: limit of the whole conversation, as JSON.
            result_chars_max: limit of one tool result.
        """
        self._opening = opening
        self._chars_max = chars_max
        self._result_chars_max = result_chars_max
        self._turns: list[list[JsonObject]] = []
        self._removed = 0

    def add_turn(self, *messages: JsonObject) -> None:
        """Append a turn: a message of the model, and the results of its calls."""
        self._turns.append(list(messages))
        while len(self._turns) > 1 and len(json.dumps(self.messages())) > self._chars_max:
            del self._turns[0]
            self._removed += 1

    def messages(self) -> Sequence[JsonObject]:
        """Return the conversation."""
        note = (
            [{"role": "user", "content": f"[{self._removed} earlier turns left out]"}]
            if self._removed
            else []
        )
        return [*self._opening, *note, *(message for turn in self._turns for message in turn)]

    def cut(self, text: str) -> str:
        """Return a tool result, cut at its end if it is too long."""
        if len(text) <= self._result_chars_max:
            return text
        left_out = len(text) - self._result_chars_max
        return f"{text[: self._result_chars_max]}\n[{left_out} characters left out]"
