"""Computes the reservation and the charge of a model request.

A request cannot have more tokens than bytes, so its size in bytes is reserved for it. The
reservation for the response is the limit that the request sets, or the gateway's default. The usage
that the provider reports is charged, even beyond the reservation, unless it is too small to be
true; then the reservation is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.ledger import Amounts, BudgetKind
from fumehood.gateway.dialects import Dialect, Usage
from fumehood.gateway.settings import Price

BYTES_PER_TOKEN_MAX = 64
"""Upper bound of the text of one token."""
BYTES_PER_TOKEN = 4
"""Estimate for the limits of a provider, which count before a request is answered."""
STREAMED_BYTES_PER_TOKEN_MAX = 1024
"""Upper bound of one token in a stream, which wraps each token in an event."""
FRAME_BYTES = 4096
"""Size of a response without its tokens, at most."""
WORDLESS_CHARACTERS = 4096
"""A string without whitespace in so many characters is an image or a sound, with few tokens for its
size."""
PROVIDER_PROMPT_TOKENS = 1024
"""Upper bound of a provider's own prompt about the tools of a request."""
COST_KINDS = (BudgetKind.MODEL_TOKENS, BudgetKind.MODEL_MICROUSD)
"""What a response costs, beyond its request."""
LIMIT_MAX = 2**31 - 1
"""Largest token limit or number of responses in a request."""


class InvalidLimit(ValueError):
    """A token limit that a provider might interpret differently; the message names it."""


def most_tokens(
    request: Mapping[str, Any], size_bytes: int, dialect: Dialect, default: int
) -> tuple[int, int]:
    """Return the largest possible numbers of tokens of a request and of its response.

    Args:
        request: the parsed request.
        size_bytes: size of the request.
        dialect: the request's dialect.
        default: tokens of a response whose request sets no limit.

    Raises:
        InvalidLimit: its token limit or number of responses is not an integer in range.
    """
    if not dialect.has_output:
        return size_bytes, 0
    limits = [limit for name in dialect.bounds if (limit := _positive(request, name))]
    return size_bytes, max(limits, default=default) * count_answers(request, dialect)


def count_answers(request: Mapping[str, Any], dialect: Dialect) -> int:
    """Return the number of responses that a request asks for.

    Raises:
        InvalidLimit: it is not an integer in range.
    """
    return max(
        (count for name in dialect.answers if (count := _positive(request, name))), default=1
    )


def _positive(request: Mapping[str, Any], name: str) -> int | None:
    value: Any = request
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    # Some providers accept ``1e5`` as an integer; all providers treat ``null`` as no limit.
    if value is None or (type(value) is int and 1 <= value <= LIMIT_MAX):
        return value
    raise InvalidLimit(f"{name} must be an integer from 1 to {LIMIT_MAX}")


def reserved_tokens(tokens_max: tuple[int, int], has_tools: bool) -> tuple[int, int]:
    """Return the tokens to reserve for a request and for its response.

    Args:
        tokens_max: from :func:`most_tokens`.
        has_tools: whether the provider adds a prompt about tools.
    """
    return tokens_max[0] + has_tools * PROVIDER_PROMPT_TOKENS, tokens_max[1]


def amounts(
    input_tokens: int, output_tokens: int, price: Price | None, answers: int = 1
) -> Amounts:
    """Return the units of each budget kind that a model request is charged to.

    Args:
        input_tokens: of the request.
        output_tokens: of all responses.
        price: of the model; None if it has none.
        answers: responses that the request asks for. Each costs a model call.
    """
    return {
        BudgetKind.MODEL_CALLS: answers,
        BudgetKind.MODEL_TOKENS: input_tokens + output_tokens,
        BudgetKind.MODEL_MICROUSD: price.microusd(input_tokens, output_tokens) if price else 0,
    }


def fewest_tokens(
    text_characters: int,
    size_bytes: int,
    answer_bytes: int,
    dialect: Dialect,
    *,
    streamed: bool,
) -> tuple[int, int]:
    """Return the smallest possible numbers of tokens of a request and of its response.

    Args:
        text_characters: of the request; see :func:`text_length`.
        size_bytes: size of the request.
        answer_bytes: size of the response.
        dialect: the request's dialect.
        streamed: whether the response is a stream of events.
    """
    bytes_per_token = STREAMED_BYTES_PER_TOKEN_MAX if streamed else BYTES_PER_TOKEN_MAX
    text_bytes = answer_bytes - FRAME_BYTES - dialect.echoes * size_bytes
    return max(1, text_characters // BYTES_PER_TOKEN_MAX), max(1, text_bytes // bytes_per_token)


def tokens_to_charge(
    usage: Usage, reserved: tuple[int, int], fewest: tuple[int, int]
) -> tuple[int, int]:
    """Return the tokens to charge for the request and for the response.

    Args:
        usage: as reported by the provider.
        reserved: for the request and for the response.
        fewest: the smallest possible numbers of both.
    """
    input_tokens = usage.input_tokens if usage.input_tokens >= fewest[0] else reserved[0]
    output = usage.output_tokens if usage.output_tokens >= fewest[1] else reserved[1]
    return input_tokens, output


def text_length(request: object) -> int:
    """Return the number of characters of a request that are text, without images and sounds."""
    length, left = 0, [request]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, str) and (
            len(value) < WORDLESS_CHARACTERS or _has_whitespace(value)
        ):
            length += len(value)
    return length


def _has_whitespace(text: str) -> bool:
    return any(map(str.isspace, text[:WORDLESS_CHARACTERS]))
