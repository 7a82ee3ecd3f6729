"""A team plays the tasks of one agent within the budget of one agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.baselines import play_noop, play_oracle
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import BudgetKind, ChargedBy
from fumehood.core.teams import with_team, without_team, without_teams
from fumehood.records.frozen_suite import freeze_suite
from fumehood.scorers.registry import score_evidence

SAMPLE = load_suite("sample")


@given(workers=st.integers(1, 15))
def test_the_budgets_of_a_team_add_up_to_that_of_one_agent(workers: int) -> None:
    team = with_team(SAMPLE, workers)
    for one, many in zip(SAMPLE.cases, team.cases, strict=True):
        own = one.task.seats[0].budget
        shares = [seat.budget for seat in many.task.seats]
        assert len(shares) == workers + 1
        for kind in BudgetKind:
            bounds = [share[kind] for share in shares]
            if kind.charged_by is ChargedBy.CLOCK or own[kind] is None:
                assert bounds == [own[kind]] * len(shares)
            else:
                assert sum(bound or 0 for bound in bounds) == own[kind]


def test_the_oracle_of_a_team_solves_the_tasks_of_one_agent() -> None:
    team = with_team(SAMPLE, 3)
    assert play_oracle(team, score_evidence).solved == len(SAMPLE.cases)
    assert play_noop(team, score_evidence).solved == 0


@given(workers=st.integers(1, 15))
def test_without_its_team_a_task_is_that_of_one_agent(workers: int) -> None:
    for one, many in zip(SAMPLE.cases, with_team(SAMPLE, workers).cases, strict=True):
        assert without_team(many.task) == one.task


@given(workers=st.integers(1, 15))
def test_without_teams_a_suite_is_stored_as_that_of_one_agent(workers: int) -> None:
    assert freeze_suite(without_teams(with_team(SAMPLE, workers))) == freeze_suite(SAMPLE)


CALLS: dict[str, Any] = {"name": "r", "calls": [{"tool_name": "t"}]}
BY_AGENT: dict[str, Any] = {"op": "equals", "path": "seat", "value": "agent"}
SAME: dict[str, Any] = {"op": "equals", "path": "owner", "value": {"$get": "seat"}}
FIRST: dict[str, Any] = {"first": [{"tool_name": "u"}]}


@pytest.mark.parametrize(
    "policy",
    [
        {"rules": [{**CALLS, "rule": "forbid", "when": [BY_AGENT]}]},
        {"rules": [{**CALLS, "rule": "require", "conditions": [SAME]}]},
        {"rules": [{**CALLS, **FIRST, "rule": "before", "about": "seat"}]},
        {"rules": [{**CALLS, **FIRST, "rule": "separate", "about": "args.order"}]},
        {"rules": [{**CALLS, **FIRST, "rule": "before", "by": "same_seat"}]},
        {"gates": [{**CALLS, "approve_if": [{"op": "not", "condition": BY_AGENT}]}]},
    ],
    ids=["when", "conditions", "about", "separate", "by", "gate"],
)
def test_a_policy_that_another_member_could_satisfy_has_no_team(policy: Any) -> None:
    case = SAMPLE.cases[0]
    cases = (replace(case, task=replace(case.task, policy=policy)),)
    with pytest.raises(InputError, match="distinguishes seats in `r`, and any member of a team"):
        with_team(replace(SAMPLE, cases=cases), 2)


def test_a_task_whose_policy_names_seats_has_no_team() -> None:
    case = SAMPLE.cases[0]
    rule: JsonObject = {"name": "r", "rule": "forbid", "calls": [], "seats": ["agent"]}
    task = replace(case.task, policy={"rules": [rule]})
    with pytest.raises(InputError, match="names seats"):
        with_team(replace(SAMPLE, cases=(replace(case, task=task),)), 3)


def test_a_task_with_several_seats_has_no_team() -> None:
    with pytest.raises(InputError, match="task werewolf_1 has several seats"):
        with_team(load_suite("marble:werewolf"), 3)
