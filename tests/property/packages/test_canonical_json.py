"""Equal values have equal texts, and only they."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.json_values import (
    canonical_around,
    canonical_json,
    copy_json,
    digest_json,
    ordered_json,
    type_word,
)
from tests.property.packages.values import OBJECTS, VALUES, bounded, same


@bounded
@given(VALUES, VALUES)
def test_texts_are_equal_exactly_if_their_values_are_equal(one: Any, other: Any) -> None:
    assert (canonical_json(one) == canonical_json(other)) == same(one, other)
    assert (digest_json(one) == digest_json(other)) == same(one, other)


@bounded
@given(VALUES)
def test_parsing_the_text_returns_the_value(value: Any) -> None:
    text = canonical_json(value)
    assert same(json.loads(text), value)
    assert canonical_json(json.loads(text)) == text


@bounded
@given(OBJECTS, st.integers())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], seed: int) -> None:
    assert canonical_json(_shuffled(value, Random(seed))) == canonical_json(value)


def test_a_member_whose_name_is_no_json_is_refused_and_not_left_out() -> None:
    with pytest.raises(TypeError, match="keys must be"):
        canonical_json([{("a", 1): 2}])


@bounded
@given(VALUES)
def test_the_text_is_one_line_of_ascii(value: Any) -> None:
    assert canonical_json(value).isascii()
    assert canonical_json(value).isprintable()


@bounded
@given(OBJECTS, st.text(max_size=8), VALUES)
def test_the_text_around_a_member_is_that_of_the_whole_object(
    value: dict[str, Any], name: str, member: Any
) -> None:
    others = {key: item for key, item in value.items() if key != name}
    before, after = canonical_around(others, name)
    assert f"{before}{canonical_json(member)}{after}" == canonical_json({**others, name: member})


@bounded
@given(OBJECTS)
def test_ordered_text_keeps_the_order_of_keys(value: dict[str, Any]) -> None:
    assert list(json.loads(ordered_json(value))) == list(value)
    assert same(json.loads(ordered_json(value)), value)


@bounded
@given(VALUES)
def test_a_copy_is_equal_and_shares_no_object(value: Any) -> None:
    copy = copy_json(value)
    assert same(copy, value)
    assert not _containers(copy) & _containers(value)


@bounded
@given(VALUES)
def test_every_value_has_a_type_name(value: Any) -> None:
    words = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
    }
    assert type_word(value) == words.get(type(value), "null")


def _shuffled(value: Any, chance: Random) -> Any:
    if isinstance(value, list):
        return [_shuffled(item, chance) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    chance.shuffle(keys)
    return {key: _shuffled(value[key], chance) for key in keys}


def _containers(value: Any) -> set[int]:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    if inner is None:
        return set()
    return {id(value)}.union(*(_containers(item) for item in inner))
