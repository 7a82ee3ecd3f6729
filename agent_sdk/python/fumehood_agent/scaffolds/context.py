"""The conversation with a model, and how it is shortened.

A tool result is cut at its end beyond ``RESULT_CHARS_MAX``. If the whole conversation, as JSON, is
too long, its oldest turns are removed or summarised until it fits, unless the strategy is ``none``.
The opening messages and the newest turn always stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from fumehood_agent.seat import JsonObject

RESULT_CHARS_MAX = 16_000
CONTEXT_CHARS_MAX = 96_000
SUMMARY_REQUEST = (
    "Summarise the conversation so far for yourself: what was done, its results, and what is left."
)


class Context:
    """A conversation in turns: a message of the model, and the results of its calls."""

    def __init__(
        self,
        *opening: JsonObject,
        chars_max: int = CONTEXT_CHARS_MAX,
        result_chars_max: int = RESULT_CHARS_MAX,
        strategy: str = "drop_oldest",
        summarise: Callable[[Sequence[JsonObject]], str] | None = None,
    ) -> None:
        """Create the conversation.

        Args:
            opening: messages that always stay.
            chars_max: limit of the whole conversation, as JSON.
            result_chars_max: limit of one tool result.
            strategy: ``none``, ``drop_oldest`` or ``summarise``.
            summarise: returns the model's summary of a conversation, for ``summarise``.
        """
        self._opening = opening
        self._chars_max = chars_max
        self._result_chars_max = result_chars_max
        self._strategy = strategy
        self._summarise = summarise
        self._turns: list[list[JsonObject]] = []
        self._removed = 0
        self._summary = ""

    def add_turn(self, *messages: JsonObject) -> None:
        """Append a turn: a message of the model, and the results of its calls."""
        if self._strategy == "summarise" and self._turns and self._is_too_long(messages):
            self._replace_by_summary()
        self._turns.append(list(messages))
        if self._strategy == "none":
            return
        while len(self._turns) > 1 and self._is_too_long():
            del self._turns[0]
            self._removed += 1

    def messages(self) -> Sequence[JsonObject]:
        """Return the conversation."""
        notes = []
        if self._removed:
            notes.append(f"[{self._removed} earlier turns left out]")
        if self._summary:
            notes.append(f"[Summary of the conversation so far: {self._summary}]")
        return [
            *self._opening,
            *({"role": "user", "content": note} for note in notes),
            *(message for turn in self._turns for message in turn),
        ]

    def cut(self, text: str) -> str:
        """Return a tool result, cut at its end if it is too long."""
        if len(text) <= self._result_chars_max:
            return text
        left_out = len(text) - self._result_chars_max
        return f"{text[: self._result_chars_max]}\n[{left_out} characters left out]"

    def _is_too_long(self, further: Sequence[JsonObject] = ()) -> bool:
        return len(json.dumps([*self.messages(), *further])) > self._chars_max

    def _replace_by_summary(self) -> None:
        assert self._summarise is not None
        request = {"role": "user", "content": SUMMARY_REQUEST}
        self._summary = self._summarise([*self.messages(), request])
        self._turns.clear()
