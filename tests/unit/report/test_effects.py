"""Differences are paired by task, trial and seed, between episodes that are equal otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from fumehood.report.runs import FACTORS
from fumehood.report.statistics.effects import Observation, differences

TASKS = ("a", "b", "c")


def seen(task: str, levels: Mapping[str, str], value: float, unit: str = "0") -> Observation:
    complete = {**dict.fromkeys(FACTORS, ""), "suite": "s", **levels}
    return Observation("s", task, (task, unit), complete, value)


def grid() -> list[Observation]:
    """Every task with two models and two agents; the value depends on task, model and agent."""
    return [
        seen(task, {"model": model, "agent": agent}, number + 10 * (model == "m2") * weight)
        for (number, task), model, (agent, weight) in product(
            enumerate(TASKS), ("m1", "m2"), (("react", 1), ("code", 3))
        )
    ]


def test_a_main_effect_pairs_episodes_that_differ_in_one_factor() -> None:
    assert differences(grid(), ("model",), ("m1",), ("m2",)) == {
        "s": {task: [10.0, 30.0] for task in TASKS}
    }


def test_agents_that_have_models_are_compared_with_each_model_separately() -> None:
    assert differences(grid(), ("agent",), ("react",), ("code",)) == {
        "s": {task: [0.0, 20.0] for task in TASKS}
    }


def test_an_interaction_is_a_difference_of_differences() -> None:
    both = differences(grid(), ("model", "agent"), ("m1", "react"), ("m2", "code"))
    assert both == {"s": {task: [20.0] for task in TASKS}}


def test_episodes_without_a_partner_are_left_out() -> None:
    partial = [one for one in grid() if not (one.task == "b" and one.levels["model"] == "m2")]
    assert set(differences(partial, ("model",), ("m1",), ("m2",))["s"]) == {"a", "c"}
    other_seed = [seen("a", {"model": "m1"}, 0), seen("a", {"model": "m2"}, 1, unit="1")]
    assert differences(other_seed, ("model",), ("m1",), ("m2",)) == {}


def test_an_agent_without_a_model_is_compared_with_the_mean_over_models() -> None:
    plain = [seen(task, {"agent": "policy_aware"}, 100.0) for task in TASKS]
    found = differences([*plain, *grid()], ("agent",), ("policy_aware",), ("react",))
    assert found["s"]["a"] == [pytest.approx(5.0 - 100.0)]
