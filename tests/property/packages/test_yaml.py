"""Libyaml and the Python parser read the same values, and neither reads an alias."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.shared.yaml_text import (
    JsonLoader,
    PlainLoader,
    lines_of_items,
    load_yaml,
)
from tests.property.packages.values import bounded

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.dates()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


@bounded
@given(VALUES, st.booleans(), st.sampled_from([PlainLoader, JsonLoader]))
def test_both_parsers_return_the_same_value(
    value: Any, flow: bool, loader: type[PlainLoader]
) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow)
    assert load_yaml(text, loader) == yaml.load(text, loader)


@bounded
@given(st.lists(VALUES, min_size=1))
def test_each_item_of_a_list_has_its_line(items: list[Any]) -> None:
    text = "".join(yaml.safe_dump([item]) for item in items)
    lines = lines_of_items(text)
    for line, after, item in zip(lines, [*lines[1:], None], items, strict=True):
        part = "\n".join(text.split("\n")[line - 1 : after and after - 1])
        assert load_yaml(part) == [item]


@pytest.mark.parametrize("text", ["[&a x, *a]", "a: &a [1]\nb: *a", "a: 1\na: 2"])
def test_aliases_and_repeated_keys_are_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match=r"is not supported|is repeated"):
        load_yaml(text)


@pytest.mark.parametrize("text", ["[" * 5_000, "{a: " * 5_000, "- " * 5_000 + "x"])
def test_a_text_with_many_levels_cannot_end_the_process(text: str) -> None:
    with pytest.raises(RecursionError):
        load_yaml(text)
