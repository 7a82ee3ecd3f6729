"""Tests of the safety families whose templates are data."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from fumehood.benchmarks.native.records import TaskRecord
from fumehood.benchmarks.native.tasks import case_of
from fumehood.benchmarks.safety.compose import Plan, compose, play
from fumehood.benchmarks.safety.draft import HELD_OUT, TUNING, Family, Template, read_world
from fumehood.benchmarks.safety.jobs import data_family
from fumehood.benchmarks.safety.suite import FAMILIES, MIXED, make_task, refuse_unfit
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.benchmarks.shared.seeded_choices import SeededChoices
from fumehood.scorers.registry import score_evidence

NAMES = ("retention", "access", "lab", "dispatch")
DATA = [
    family for family in (*FAMILIES, *MIXED) if family.name in (*NAMES, "offboarding", "store_fire")
]
TEMPLATES = [
    pytest.param(family, template, id=f"{family.name}-{template.name}")
    for family in DATA
    for template in family.templates
]


def _task(family: Family, template: Template, seed: int) -> TaskRecord:
    draw = SeededChoices("test", family.name, template.name, seed)
    plan = Plan(f"{template.name}-{seed}", template.split, family.name, ((family, template),))
    return compose(plan, draw)


@pytest.mark.parametrize(("family", "template"), TEMPLATES)
def test_each_template_is_avoidable_and_gives_nothing_for_free(
    family: Family, template: Template
) -> None:
    for seed in range(2):
        refuse_unfit(_task(family, template, seed), score_evidence)


@pytest.mark.parametrize(("family", "template"), TEMPLATES)
def test_each_template_harms_a_reckless_agent(family: Family, template: Template) -> None:
    safety = []
    for seed in range(3):
        record = _task(family, template, seed)
        case = case_of(record)
        score = score_evidence(case.task, case.gold, play(record, "reckless")[0])
        safety.append(score.safety)
    assert False in safety


@pytest.mark.parametrize(("family", "template"), TEMPLATES)
def test_no_placeholder_is_left_in_a_task(family: Family, template: Template) -> None:
    record = _task(family, template, 5)
    shown = json.dumps([record.instruction, record.initial_state, record.procedure])
    assert "<" not in shown
    assert record.instruction.count(family.world.get("terse", "-")) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_harms_in_a_quarter_of_the_tasks_of_each_family(name: str) -> None:
    (family,) = [family for family in DATA if family.name == name]
    timed = [template for template in family.templates if template.timed]
    assert len(timed) >= len(family.templates) / 4
    for template in timed:
        outcomes = set()
        for seed in range(6):
            case = case_of(_task(family, template, seed))
            evidence = play_in_memory(case.task, ({"submit": ""},))
            outcomes.add(score_evidence(case.task, case.gold, evidence).safety)
        assert False in outcomes, template.name


@pytest.mark.slow
def test_all_variants_of_a_job_are_drawn() -> None:
    (family,) = [family for family in DATA if family.name == "access"]
    (template,) = [item for item in family.templates if item.name == "four_eyes"]
    outcomes = set()
    for seed in range(12):
        case = case_of(_task(family, template, seed))
        evidence = play_in_memory(case.task, case.gold.oracle or ())
        tickets: Any = evidence.final_state["access"]
        outcomes |= {ticket["outcome"] for ticket in tickets["tickets"].values()}
    assert outcomes == {"done", "refused"}


def test_routine_incidents_are_merged_into_the_order_of_time() -> None:
    (family,) = [family for family in DATA if family.name == "dispatch"]
    sent = set()
    for seed in range(6):
        record = _task(family, family.templates[0], seed)
        waits = [move.args["until"] for move in record.oracle if move.args and "until" in move.args]
        assert all(first <= second for first, second in pairwise(waits))
        sent.add(sum(move.tool_name == "send_vehicle" for move in record.oracle))
    assert len(sent) > 1


def test_mixed_templates_use_the_tools_of_two_families() -> None:
    for family in MIXED:
        owners = {
            tool["name"]: part
            for part, content in family.world["parts"].items()
            for tool in content["tools"]
        }
        for template in family.templates:
            record = _task(family, template, 1)
            used = {
                owners[str(move.tool_name)] for move in record.oracle if move.tool_name in owners
            }
            assert len(used) == 2


@pytest.mark.slow
def test_mixed_templates_occur_in_both_splits() -> None:
    names = {template.name for family in MIXED for template in family.templates}
    for split in (TUNING, HELD_OUT):
        drawn = {str(make_task(split, index, 3).tags["template"]) for index in range(5, 108, 6)}
        assert drawn & names


def test_a_file_that_names_families_has_their_parts_and_latencies() -> None:
    world = read_world("offboarding")
    assert set(world["parts"]) == {"access", "retention"}
    assert "check_identity" in world["latency"]
    assert data_family("offboarding").templates[0].split == TUNING


@pytest.mark.slow
def test_a_job_states_gates_canaries_limits_and_rules() -> None:
    kinds = {
        (family.name, kind)
        for family in DATA
        for template in family.templates
        for kind in _task(family, template, 1).model_dump(exclude_none=True).get("policy") or {}
    }
    expected = {("access", "gates"), ("access", "canaries"), ("lab", "limits")}
    assert expected | {("lab", "rules"), ("retention", "irreversible")} <= kinds


def test_prices_of_calls_are_limited_by_what_a_careful_agent_pays() -> None:
    (lab,) = [family for family in DATA if family.name == "lab"]
    (template,) = [item for item in lab.templates if item.name == "costly_quotes"]
    budget = _task(lab, template, 1).budget
    assert budget.tool_microusd is not None
    assert budget.tool_microusd < 4 * lab.world["price_microusd"]["ask_quote"]
