"""A run can take a part of a suite, and change the budgets of its tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from fumehood.orchestrator.config import BudgetChange, Counterpart, TaskSelection, run_config
from fumehood.orchestrator.setup import RunSetup
from fumehood.orchestrator.task_changes import selected, with_budget, with_counterparts

SAMPLE = load_suite("sample")


def names(**selection: Any) -> list[str]:
    cases = selected(SAMPLE, TaskSelection(**selection)).cases
    return [case.task.task_id for case in cases]


def test_tasks_are_selected_by_pattern_tag_and_number() -> None:
    every = names()
    crud = [name for name in every if name.startswith("crud_")]
    assert names(names=("crud_*",)) == crud
    assert names(names=("crud_*",), limit=3) == crud[:3]
    tag, value = next(iter(SAMPLE.cases[0].task.tags.items()))
    expected = [case.task.task_id for case in SAMPLE.cases if case.task.tags.get(tag, "") == value]
    assert names(tags={tag: str(value)}) == expected


def test_a_tag_with_several_values_is_selected_by_each_of_them() -> None:
    first = SAMPLE.cases[0]
    tagged = replace(first, task=replace(first.task, tags={"risk": ["data loss", "outage"]}))
    suite = replace(SAMPLE, cases=(tagged, *SAMPLE.cases[1:]))
    for pattern in ("data*", "outage"):
        assert selected(suite, TaskSelection(names=("*",), tags={"risk": pattern})).cases == (
            tagged,
        )
    with pytest.raises(InputError, match="did you mean 'outage'"):
        selected(suite, TaskSelection(names=("*",), tags={"risk": "outtage"}))


@given(size=st.integers(1, len(SAMPLE.cases)), seed=st.integers(0, 2**32))
def test_a_sample_is_drawn_with_its_seed_and_keeps_the_order(size: int, seed: int) -> None:
    drawn = names(sample=size, sample_seed=seed)
    assert drawn == names(sample=size, sample_seed=seed)
    assert len(set(drawn)) == size
    assert drawn == [name for name in names() if name in drawn]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (
            {"names": ("nothing_*",)},
            "tasks: sample has no task 'nothing_*'; its tasks are, for example",
        ),
        ({"names": ("crud_*",), "tags": {"a": "b"}}, "sample has no task 'crud_*' with a=b; "),
        ({"tags": {"difficulti": "easy"}}, "'difficulti': "),
        ({"sample": 41}, "tasks.sample: sample has only 40 such tasks"),
    ],
)
def test_a_selection_without_tasks_names_the_remedy(
    selection: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        names(**selection)
    assert message in str(raised.value)


def test_an_agent_that_carries_out_procedures_needs_one_in_each_task_before_the_run() -> None:
    setup = RunSetup.create(run_config({"suite": "sample", "agents": ["oracle", "careful"]}))
    with pytest.raises(InputError, match="has no `procedure` for careful: run a safety suite"):
        setup.check()


def test_bounds_replace_those_of_the_tasks_and_a_scale_multiplies_them() -> None:
    changed = with_budget(SAMPLE, BudgetChange(calls=2, scale=0.5))
    for before, after in zip(SAMPLE.cases, changed.cases, strict=True):
        old, new = before.task.seats[0].budget, after.task.seats[0].budget
        assert new[BudgetKind.CALLS] == 2
        assert new[BudgetKind.STEPS] == -(-(old[BudgetKind.STEPS] or 0) // 2)
        assert new[BudgetKind.WALL_MS] == old[BudgetKind.WALL_MS]


def test_a_run_plans_the_selected_tasks_with_their_budgets() -> None:
    settings = {"tasks": {"names": ["crud_*"], "limit": 2}, "budget": {"calls": 1}}
    setup = RunSetup.create(run_config({"suite": "sample", "agents": ["noop"], **settings}))
    assert [episode.name.task for episode in setup.episodes] == names(names=("crud_*",), limit=2)
    assert {case.task.seats[0].budget[BudgetKind.CALLS] for case in setup.suite.cases} == {1}


def test_an_agent_that_the_run_names_for_another_seat_is_a_counterpart() -> None:
    games = load_suite("card-game:dev:seat")
    named = with_counterparts(games, {"opponent": Counterpart(agent="noop")})
    assert {case.task.counterparts["opponent"] for case in named.cases} == {"noop"}
    assert with_counterparts(SAMPLE, {}) == SAMPLE
    changed = with_budget(named, BudgetChange(calls=3))
    agent, opponent = changed.cases[0].task.seats
    assert agent.budget[BudgetKind.CALLS] == 3
    assert opponent == games.cases[0].task.seats[1]
