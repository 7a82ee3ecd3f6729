"""What changed between two states, leaf by leaf."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.state_diff import Change, changed_paths, changes, is_below

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a",)]),
        ({"a": 1}, {"a": 1.0}, [("a",)]),
        ({"a": 1}, {"a": True}, [("a",)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, [("a", "c")]),
        ({"a": 1}, {"a": {"b": 1, "c": 2}}, [("a", "b"), ("a", "c")]),
        ({"a": {"b": 1, "c": 2}}, {"a": 1}, [("a",)]),
        ({}, {"a": {}}, []),
        ({"f": {}}, {"f": {"/x.txt": ""}}, [("f", "/x.txt")]),
        ({"l": [1, 2]}, {"l": [1, 3, 4]}, [("l", 1), ("l", 2)]),
        (
            {"jobs": [{"name": "b", "cron": "1"}]},
            {"jobs": [{"name": "a", "cron": "2"}, {"name": "b", "cron": "1"}]},
            [("jobs", "a", "cron"), ("jobs", "a", "name")],
        ),
        ({"docs": [{"id": "x", "n": 1}]}, {"docs": [{"id": "x", "n": 2}]}, [("docs", "x", "n")]),
    ],
)
def test_every_changed_leaf_is_named_once(before: Any, after: Any, paths: list[Any]) -> None:
    assert list(changed_paths(before, after)) == paths


def test_entries_with_the_same_id_are_matched_by_position() -> None:
    before: Any = {"l": [{"id": "x"}, {"id": "x"}]}
    after: Any = {"l": [{"id": "x"}, {"id": "x", "n": 1}]}
    assert changed_paths(before, after) == (("l", 1, "n"),)


@given(JSON)
def test_equal_values_have_no_differences(value: Any) -> None:
    assert changed_paths(value, value) == ()


@given(JSON, JSON)
def test_a_difference_is_seen_from_both_sides(one: Any, other: Any) -> None:
    assert bool(changed_paths(one, other)) == bool(changed_paths(other, one))


@given(
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=4),
    st.text(max_size=2),
    st.integers(),
)
def test_setting_one_key_changes_that_key_or_nothing(
    state: dict[str, int], key: str, value: int
) -> None:
    changed = changed_paths({**state}, {**state, key: value})
    same = canonical_json(state.get(key)) == canonical_json(value)
    assert changed == (() if same else ((key,),))


def test_a_path_is_below_itself_and_below_all_above_it() -> None:
    assert is_below(("a", "b"), ())
    assert is_below(("a", "b"), ["a"])
    assert is_below(("a", "b"), ["a", "b"])
    assert not is_below(("a",), ["a", "b"])
    assert not is_below(("ab",), ["a"])


def test_a_change_contains_the_old_and_the_new_value() -> None:
    before: JsonObject = {"accounts": {"a": {"tier": "basic", "old": 1}}}
    after: JsonObject = {"accounts": {"a": {"tier": "gold", "new": [True]}}}
    assert changes(before, after) == (
        Change(("accounts", "a", "new", 0), None, "true"),
        Change(("accounts", "a", "old"), "1", None),
        Change(("accounts", "a", "tier"), '"basic"', '"gold"'),
    )
