"""Seeded choices are the same on every machine and in every version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.shared.seeded_choices import SeededChoices


def test_equal_names_give_equal_sequences() -> None:
    choices = SeededChoices("toolmisuse", "0.1", 42, "dev_crud_00000")
    assert [choices.below(1000) for _ in range(5)] == [446, 617, 139, 208, 772]


def test_different_names_give_different_sequences() -> None:
    assert [SeededChoices("a", 1).below(10**9)] != [SeededChoices("a", "1").below(10**9)]


@given(st.text(max_size=5), st.lists(st.integers(), max_size=8))
def test_shuffling_keeps_all_items(name: str, values: list[int]) -> None:
    assert sorted(SeededChoices(name).shuffled(values)) == sorted(values)


@given(st.text(max_size=5), st.integers(1, 50), st.data())
def test_several_picks_are_distinct_choices(name: str, size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, size))
    some = SeededChoices(name).some(range(size), count)
    assert len(set(some)) == count
    assert set(some) <= set(range(size))
