"""Limits and bounds of the gateway that no provider and no agent can move."""

from __future__ import annotations

import json

import pytest

from fumehood.core.ledger import BudgetKind
from fumehood.gateway.costs import (
    FRAME_BYTES,
    LIMIT_MAX,
    PROVIDER_PROMPT_TOKENS,
    InvalidLimit,
    amounts,
    fewest_tokens,
    most_tokens,
    reserved_tokens,
    text_length,
    tokens_to_charge,
)
from fumehood.gateway.dialects import DIALECTS, Usage
from fumehood.gateway.requests import MemoryQuota, ModelRefusal, refuse
from fumehood.gateway.settings import Price
from fumehood.gateway.waiting import Spans

CHAT = DIALECTS["/v1/chat/completions"]


def test_a_request_beyond_the_memory_quota_is_rejected() -> None:
    quota = MemoryQuota(10)
    with quota.hold() as share:
        assert share.take(10)
        assert not share.take(1)
        assert share.size_bytes == 10


def test_a_finished_request_releases_its_memory() -> None:
    quota = MemoryQuota(10)
    with quota.hold() as share:
        share.take(10)
    with quota.hold() as share:
        assert share.take(10)


def test_two_requests_share_the_memory_quota() -> None:
    quota = MemoryQuota(10)
    with quota.hold() as one, quota.hold() as other:
        assert one.take(6)
        assert not other.take(5)
        assert other.take(4)


@pytest.mark.parametrize("limit", [1, LIMIT_MAX])
def test_a_token_limit_in_range_is_reserved(limit: int) -> None:
    assert most_tokens({"max_tokens": limit}, 5, CHAT, 7) == (5, limit)


@pytest.mark.parametrize("limit", [0, LIMIT_MAX + 1, 1.0, True, "5"])
def test_a_token_limit_out_of_range_is_rejected_by_name(limit: object) -> None:
    with pytest.raises(InvalidLimit, match="max_tokens"):
        most_tokens({"max_tokens": limit}, 5, CHAT, 7)


def test_the_largest_token_limit_counts_for_each_response() -> None:
    request = {"max_tokens": 3, "max_completion_tokens": 4, "n": 2}
    assert most_tokens(request, 5, CHAT, 7) == (5, 8)
    assert most_tokens({"max_tokens": None}, 5, CHAT, 7) == (5, 7)


def test_embeddings_have_no_output_to_reserve() -> None:
    assert most_tokens({}, 5, DIALECTS["/v1/embeddings"], 7) == (5, 0)


@pytest.mark.parametrize(("reported", "charged"), [(9, 100), (10, 10), (11, 11)])
def test_the_smallest_possible_usage_is_charged_as_reported(reported: int, charged: int) -> None:
    assert tokens_to_charge(Usage(reported, 1), (100, 50), (10, 1)) == (charged, 1)


@pytest.mark.parametrize(("reported", "charged"), [(9, 50), (10, 10)])
def test_an_impossible_output_usage_is_charged_as_reserved(reported: int, charged: int) -> None:
    assert tokens_to_charge(Usage(1, reported), (100, 50), (1, 10)) == (1, charged)


def test_text_of_64_bytes_is_at_least_one_token() -> None:
    characters = text_length({"messages": [{"content": "x " * 64}]})
    assert fewest_tokens(characters, 200, FRAME_BYTES + 128, CHAT, streamed=False) == (2, 2)
    assert fewest_tokens(characters, 200, FRAME_BYTES + 2048, CHAT, streamed=True) == (2, 2)


def test_a_long_string_without_whitespace_is_not_text() -> None:
    assert text_length({"image": "x" * 4096}) == 0
    assert text_length({"text": "x" * 4095}) == 4095


def test_a_price_is_rounded_up() -> None:
    charged = amounts(1, 1, Price(0.4, 0.7))
    assert charged[BudgetKind.MODEL_MICROUSD] == 2
    assert charged[BudgetKind.MODEL_TOKENS] == 2
    assert amounts(1, 1, None)[BudgetKind.MODEL_MICROUSD] == 0


@pytest.mark.parametrize("kind", ModelRefusal)
def test_a_refusal_names_its_kind_twice_for_all_clients(kind: ModelRefusal) -> None:
    response = refuse(kind, "why")
    body = json.loads(bytes(response.body))
    name = kind.name.lower()
    assert response.status_code == kind.value
    assert body["type"] == "error"
    assert body["error"] == {"type": name, "code": name, "message": "why", "param": None}


def test_parallel_delays_count_once() -> None:
    delays = Spans()
    assert delays.add(0, 10) == 10
    assert delays.add(5, 12) == 2
    assert delays.add(12, 13) == 1
    assert delays.add(20, 21) == 1


def test_a_request_with_tools_reserves_the_prompt_of_the_provider() -> None:
    assert reserved_tokens((10, 5), False) == (10, 5)
    assert reserved_tokens((10, 5), True) == (10 + PROVIDER_PROMPT_TOKENS, 5)
