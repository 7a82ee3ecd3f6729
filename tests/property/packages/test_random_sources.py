"""A draw depends only on its key, not on other draws."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.fault_plan import KeyedRandom
from fumehood.core.tools import ToolCall
from fumehood.harness_modes.toolmisuse import SequentialRandom
from tests.parts.specs import fault_plan
from tests.property.packages.values import OBJECTS, TEXT, bounded

DRAWS = st.tuples(
    st.integers(min_value=0, max_value=2),
    st.sampled_from(["a", "b"]),
    OBJECTS,
    st.sampled_from(["fire", "say"]),
)

SPEC_NUMBERS = [
    (42, 0, [0.3842852904585733, 0.02875274077440748, 0.18520157921861113]),
    (42, 1, [0.649532940962023, 0.4576297290236131]),
    (42, 2, [0.7342082231469546, 0.06269072896056127]),
    (0, 0, [0.8444218515250481, 0.7579544029403025]),
    (7, 0, [0.4781566725133396, 0.9094679247432736, 0.0599144314766078, 0.9187342946804694]),
    (7, 2, [0.8857206002267599, 0.9152550726210736]),
    (62009, 0, [0.09346623817445121]),
]
"""Seed, rule, and the first numbers of its stream (docs/reference/toolmisuse.md, Random draws)."""


def draw(
    random_source: KeyedRandom, named: tuple[int, str, dict[str, Any], str], number: int = 1
) -> float:
    rule, tool, arguments, purpose = named
    return random_source.draw(rule, ToolCall(tool, arguments, number), purpose)


@pytest.mark.slow
@bounded
@given(st.integers(), DRAWS, st.lists(DRAWS, max_size=6))
def test_a_draw_does_not_depend_on_other_draws(
    seed: int,
    named: tuple[int, str, dict[str, Any], str],
    others: list[tuple[int, str, dict[str, Any], str]],
) -> None:
    alone, beside = KeyedRandom(seed), KeyedRandom(seed)
    for other in others:
        if other != named:
            draw(beside, other)
    assert draw(alone, named) == draw(beside, named)


@bounded
@given(st.integers(), DRAWS)
def test_a_draw_depends_neither_on_the_call_number_nor_on_the_order_of_arguments(
    seed: int, named: tuple[int, str, dict[str, Any], str]
) -> None:
    rule, tool, arguments, purpose = named
    turned = dict(reversed(arguments.items()))
    assert draw(KeyedRandom(seed), named, 1) == draw(
        KeyedRandom(seed), (rule, tool, turned, purpose), 9
    )


@bounded
@given(st.integers(), DRAWS)
def test_a_draw_depends_on_each_part_of_its_key(
    seed: int, named: tuple[int, str, dict[str, Any], str]
) -> None:
    rule, tool, arguments, purpose = named
    others = [
        (rule + 1, tool, arguments, purpose),
        (rule, f"{tool}x", arguments, purpose),
        (rule, tool, {**arguments, "one more": 1}, purpose),
        (rule, tool, arguments, f"{purpose}x"),
    ]
    random_source = KeyedRandom(seed)
    drawn = [
        draw(random_source, named),
        draw(random_source, named),
        *(draw(random_source, other) for other in others),
    ]
    drawn.append(draw(KeyedRandom(seed + 1), named))
    assert len(set(drawn)) == len(drawn)


def test_the_numbers_are_spread_evenly() -> None:
    """Chi-squared over 20 bins; 43.8 is exceeded once in a thousand seeds, and this is one seed."""
    random_source, bins, count = KeyedRandom(2026), [0] * 20, 10_000
    for number in range(count):
        bins[int(draw(random_source, (0, "t", {"n": number}, "fire")) * 20)] += 1
    expected = count / 20
    assert sum((found - expected) ** 2 / expected for found in bins) < 43.8


def test_neighbouring_draws_are_not_correlated() -> None:
    random_source, count = KeyedRandom(7), 5000
    drawn = [draw(random_source, (0, "t", {}, "fire")) - 0.5 for _ in range(count)]
    correlation = sum(a * b for a, b in pairwise(drawn)) / (count / 12)
    assert abs(correlation) < 0.06


@pytest.mark.parametrize(("seed", "rule", "numbers"), SPEC_NUMBERS)
def test_streams_give_the_numbers_of_the_reference(
    seed: int, rule: int, numbers: list[float]
) -> None:
    random_source = SequentialRandom(seed, fault_plan(*[{"family": "timeout"}] * 3))
    call = ToolCall("t", {})
    assert [random_source.draw(rule, call, "fire") for _ in numbers] == numbers


@bounded
@given(
    st.integers(),
    st.integers(),
    st.lists(st.tuples(st.integers(min_value=0, max_value=2), TEXT), max_size=12),
)
def test_the_seed_of_a_rule_takes_precedence_over_that_of_the_task(
    seed: int, own: int, draws: list[tuple[int, str]]
) -> None:
    rules = [
        {"family": "timeout", "trigger": {"prob": prob}}
        for prob in ({"seed": own}, 0.5, {"seed": None})
    ]
    random_source = SequentialRandom(seed, fault_plan(*rules))
    streams = [Random(base * 9973 + index) for index, base in enumerate((own, seed, seed))]
    for rule, purpose in draws:
        assert random_source.draw(rule, ToolCall("t", {}), purpose) == streams[rule].random()
