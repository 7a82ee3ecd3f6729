"""What a call of a model may cost, and what it did cost.

A request cannot have more tokens than bytes, so its bytes are what is reserved for it. For its answer that is
the bound it sets, or the gateway's own. What a provider reports afterwards is believed unless it cannot be
true; what is not believed is not given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.core.ledger import Amounts, BudgetKind
from runner.gateway.dialects import Dialect, Usage
from runner.gateway.settings import Price

BYTES_PER_TOKEN_MAX = 64
"""An answer of more bytes a token cannot be; a streamed one has words around each token, which count too."""
STREAMED_BYTES_PER_TOKEN_MAX = 1024
FRAME_BYTES = 4096
"""Of an answer, around its tokens."""


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


def believed(
    usage: Usage, reserved: tuple[int, int], answer_bytes: int, *, streamed: bool
) -> tuple[int, int]:
    """Return the tokens to settle.

    Args:
        usage: as reported.
        reserved: for the request and for the answer.
        answer_bytes: as many passed.
        streamed: whether each token came with words of its own around it.
    """
    most = STREAMED_BYTES_PER_TOKEN_MAX if streamed else BYTES_PER_TOKEN_MAX
    least = (answer_bytes - FRAME_BYTES) // most
    read = usage.input_tokens if usage.input_tokens > 0 else reserved[0]
    said = usage.output_tokens if usage.output_tokens >= max(1, least) else reserved[1]
    return read, said
