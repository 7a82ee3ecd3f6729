"""The budget of all model requests of an episode."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.ledger import Budget
from fumehood.service.forked_episode import model_budget
from tests.parts.specs import episode_spec


def budget_of(*budgets: Budget) -> dict[str, int]:
    spec = episode_spec()
    seats = tuple(replace(spec.seats[0], budget=budget) for budget in budgets)
    return model_budget(replace(spec, seats=seats)).to_json()


def test_the_seats_of_an_episode_share_the_sum_of_their_budgets() -> None:
    one = Budget(steps=5, model_calls=3, model_tokens=100)
    other = Budget(calls=5, model_calls=4, model_tokens=200)
    assert budget_of(one, other) == {"model_calls": 7, "model_tokens": 300}


def test_a_seat_without_a_bound_lifts_that_of_the_episode() -> None:
    one = Budget(model_calls=3, model_microusd=5)
    assert budget_of(one, Budget(model_microusd=0)) == {"model_microusd": 5}
    assert budget_of(one, Budget()) == {}
