"""How a scaffold asks its model: sampling, limits, and what happens to a long conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fumehood_agent.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings of one model. The runner validates them and passes those that are not defaults."""

    dialect: str = "chat"
    """API of the requests: ``chat``, ``responses``, ``messages`` or ``gemini``."""
    output_limit_field: str = "max_tokens"
    """Field of a chat request with the token limit; some providers accept only one of two."""
    output_tokens: int = 1024
    """Token limit of one reply. So many tokens are reserved for each request."""
    temperature: float | None = 0
    """None leaves it to the provider."""
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    tool_choice: str | None = None
    """``auto``, ``required`` or ``none``; None leaves it to the provider."""
    turns: int = 64
    """Replies to one message of the user."""
    unusable_replies: int = 5
    """Replies in a row that are cut or cannot be parsed, until the scaffold stops."""
    context: str = "drop_oldest"
    """What happens to a conversation beyond ``context_characters``: ``none``, ``drop_oldest`` or
    ``summarise``."""
    context_characters: int = 96_000
    """Length of the conversation as JSON."""

    @classmethod
    def from_json(cls, text: str) -> ModelSettings:
        """Return the settings in a JSON object; the others have their defaults.

        Raises:
            UsageError: the text is not such an object.
        """
        try:
            values: Any = json.loads(text)
        except ValueError as error:
            raise UsageError(f"model settings: not JSON: {error}") from error
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or not names >= set(values):
            raise UsageError(f"model settings: must be a JSON object with {', '.join(names)}")
        return cls(**values)
