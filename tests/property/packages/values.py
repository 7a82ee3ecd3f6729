"""JSON values of every kind, for properties."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

bounded = settings(max_examples=40, deadline=None)
"""For every property: a machine may be busy, and its tests are many."""

TEXT = st.text(max_size=12)
"""Any text, lone surrogates included."""
WIRE_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Text that can cross the wire."""
NUMBERS = (
    st.integers()
    | st.integers(min_value=10**20, max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, 1, 1.0, -0.0, 0.0, 2**53, 2**53 + 1, 2**63, -(2**63), 1e22, 5e-324])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXT, VALUES, max_size=4)
FLAT_OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXT, SCALARS, max_size=3)
"""Cheaper to make, where the depth of a value does not matter."""
COUNTS = st.integers(min_value=0, max_value=2**63 - 1)


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, where 1, 1.0 and true differ, nor 0.0 and -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)
