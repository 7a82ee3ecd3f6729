"""What a call of a model may cost, and what it did cost.

A request cannot have more tokens than bytes, so its bytes are what is reserved for it. For its answer that is
the bound it sets, or the gateway's own. What a provider reports afterwards is believed unless it cannot be
true; what is not believed is not given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.ledger import Amounts, BudgetKind
from fumehood.gateway.dialects import Dialect, Usage
from fumehood.gateway.settings import Price

BYTES_PER_TOKEN_MAX = 64
"""Text of more bytes a token cannot be; a streamed one has words around each token, which count too."""
STREAMED_BYTES_PER_TOKEN_MAX = 1024
FRAME_BYTES = 4096
"""Of an answer, around its tokens."""
WORDLESS_CHARACTERS = 4096
"""A string that begins with so many and no blank is an image or a sound: few tokens for its size."""


BOUND_MAX = 2**31 - 1
"""Of what a request may set for a bound, or want for answers."""


class BadBound(ValueError):
    """A bound that a provider may understand otherwise than we do; the message says which."""


def most_tokens(
    request: Mapping[str, Any], size_bytes: int, dialect: Dialect, default: int
) -> tuple[int, int]:
    """Return the most tokens that a request and its answer can have.

    Args:
        request: parsed.
        size_bytes: of the request.
        dialect: its own.
        default: tokens of an answer whose request sets no bound.

    Raises:
        BadBound: it sets one that is no number of tokens, or wants no number of answers.
    """
    bounds = [bound for name in dialect.bounds if (bound := _positive(request, name))]
    answers = [count for name in dialect.answers if (count := _positive(request, name))]
    return size_bytes, max(bounds, default=default) * max(answers, default=1)


def _positive(request: Mapping[str, Any], name: str) -> int | None:
    value = request.get(name)
    # ``1e5`` is a number of tokens to some; ``null`` is none at all to everybody.
    if value is None or (type(value) is int and 1 <= value <= BOUND_MAX):
        return value
    raise BadBound(f"{name} is an integer from 1 to {BOUND_MAX}")


def amounts(input_tokens: int, output_tokens: int, price: Price | None) -> Amounts:
    """Return what so many tokens are in every kind of budget that a model's call is charged to."""
    return {
        BudgetKind.MODEL_CALLS: 1,
        BudgetKind.MODEL_TOKENS: input_tokens + output_tokens,
        BudgetKind.MODEL_MICROUSD: price.microusd(input_tokens, output_tokens) if price else 0,
    }


def fewest_tokens(
    request: Mapping[str, Any],
    size_bytes: int,
    answer_bytes: int,
    dialect: Dialect,
    *,
    streamed: bool,
) -> tuple[int, int]:
    """Return the fewest tokens that a request and its answer can have had.

    Args:
        request: parsed.
        size_bytes: of the request.
        answer_bytes: as many passed.
        dialect: the request's own.
        streamed: whether each token of the answer came with words of its own around it.
    """
    most = STREAMED_BYTES_PER_TOKEN_MAX if streamed else BYTES_PER_TOKEN_MAX
    said_bytes = answer_bytes - FRAME_BYTES - dialect.echoes * size_bytes
    return max(1, _text_length(request) // BYTES_PER_TOKEN_MAX), max(1, said_bytes // most)


def believed(usage: Usage, reserved: tuple[int, int], fewest: tuple[int, int]) -> tuple[int, int]:
    """Return the tokens to settle.

    Args:
        usage: as reported.
        reserved: for the request and for the answer.
        fewest: that both can have had.
    """
    read = usage.input_tokens if usage.input_tokens >= fewest[0] else reserved[0]
    said = usage.output_tokens if usage.output_tokens >= fewest[1] else reserved[1]
    return read, said


def _text_length(request: object) -> int:
    """Return how many characters of a request are words, not pictures."""
    length, left = 0, [request]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, str) and (len(value) < WORDLESS_CHARACTERS or _has_blank(value)):
            length += len(value)
    return length


def _has_blank(text: str) -> bool:
    return any(map(str.isspace, text[:WORDLESS_CHARACTERS]))
