"""Requirements of every random source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fumehood.core.fault_plan import KeyedRandom, RandomSource
from fumehood.core.tools import ToolCall
from fumehood.harness_modes.toolmisuse import SequentialRandom
from tests.parts.specs import fault_plan

PLAN = fault_plan({"family": "timeout"}, {"family": "authz"})
MAKERS: dict[str, Callable[[int], RandomSource]] = {
    "named": KeyedRandom,
    "streams": lambda seed: SequentialRandom(seed, PLAN),
}
CALL = ToolCall("get_account", {"id": "ax1"}, 1)

Roll = Callable[[int], RandomSource]


@pytest.fixture(params=MAKERS)
def roll(request: pytest.FixtureRequest) -> Roll:
    """Makes random_source of a seed."""
    return MAKERS[request.param]


def numbers(random_source: RandomSource, rule: int = 0, count: int = 200) -> list[float]:
    return [random_source.draw(rule, CALL, "fire") for _ in range(count)]


def test_draws_are_at_least_0_and_less_than_1(roll: Roll) -> None:
    drawn = numbers(roll(7), count=2000)
    assert all(0 <= number < 1 for number in drawn)
    assert 0.45 < sum(drawn) / len(drawn) < 0.55
    assert min(drawn) < 0.01
    assert max(drawn) > 0.99


def test_the_same_seed_gives_the_same_draws(roll: Roll) -> None:
    assert numbers(roll(7)) == numbers(roll(7))


def test_another_seed_gives_other_draws(roll: Roll) -> None:
    assert not set(numbers(roll(7))) & set(numbers(roll(8)))


def test_every_rule_has_separate_draws(roll: Roll) -> None:
    random_source = roll(7)
    assert not set(numbers(random_source, rule=0)) & set(numbers(random_source, rule=1))


def test_draws_of_one_rule_do_not_change_those_of_another(roll: Roll) -> None:
    alone, beside = roll(7), roll(7)
    numbers(beside, rule=1)
    assert numbers(alone, rule=0) == numbers(beside, rule=0)


@pytest.mark.parametrize("seed", [0, -1, 2**31, -(2**63), 10**40])
def test_any_integer_is_a_valid_seed(roll: Roll, seed: int) -> None:
    assert len(set(numbers(roll(seed)))) == 200
