"""Tests of MARBLE: an agreement and a won game decide success; a judge's ratings are metrics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.marble.world_bargaining import Bargaining
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.conversation import Handover
from fumehood.core.errors import InputError
from fumehood.core.json_values import copy_object
from fumehood.core.task import Case
from fumehood.core.tools import Failure, ToolCall
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_data import benchmark_data
from tests.unit.benchmarks.scoring import play

BARGAINED: dict[str, Any] = {
    "scenario": "bargaining",
    "task_id": 3,
    "coordinate_mode": "",
    "environment": {"type": ""},
    "task": {"content": "A lamp is for sale.", "output_format": "any"},
    "agents": [
        {"agent_id": f"agent{number}", "profile": "Be firm.", "role": role}
        for number, role in enumerate(("seller", "seller", "buyer", "buyer"), 1)
    ],
}


def case_of(folder: Path, record: dict[str, Any]) -> Case:
    path = folder / "records.jsonl"
    path.write_text(json.dumps(record) + "\n")
    return load_suite(f"marble:{record['scenario']}:{path}").cases[0]


def solved(cases: Sequence[Case]) -> tuple[int, int]:
    """Return how many cases the oracle solves, and how many the no-op solves."""
    oracle = sum(play(case, case.gold.oracle or ()).success is True for case in cases)
    return oracle, sum(play(case, ({"submit": ""},)).success is True for case in cases)


def test_published_bargaining_records_are_solved_by_their_oracle_and_not_by_the_no_op() -> None:
    path = benchmark_data("marble/bargaining_first10.jsonl")
    assert solved(load_suite(f"marble:bargaining:{path}").cases) == (10, 0)


def test_games_are_won_by_their_oracle_and_not_by_the_no_op() -> None:
    cases = load_suite("marble:werewolf").cases
    assert solved(cases) == (10, 0)
    assert {case.gold.criteria[0]["side"] for case in cases} == {"wolves", "villagers"}
    assert len({str(case.task.initial_state) for case in cases}) == 10


def rated(question: Question) -> Opinion:
    answer = "4" if question.name == "rating_buyer" else None
    return Opinion(answer, (answer, answer, None), {"calls": 3})


def test_an_agreement_decides_success_and_ratings_are_metrics(tmp_path: Path) -> None:
    case = case_of(tmp_path, BARGAINED)
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    score = score_evidence(case.task, case.gold, evidence, rated)
    assert score.success is True
    assert score.metrics["price"] == 10
    assert (score.metrics["rating_buyer"], score.metrics["rating_seller"]) == (4, None)
    assert score.metrics["task_completion"] is None, "the rating of one side is unknown"
    assert score.metrics["judge_calls"] == 9, "the control of the unreadable rating is counted"
    walked_out: list[Move] = [{"tool_name": "end_negotiation", "args": {}}, {"submit": ""}]
    assert (
        score_evidence(case.task, case.gold, play_in_memory(case.task, walked_out), rated).success
        is False
    )


def test_a_side_on_which_the_votes_differ_has_their_median(tmp_path: Path) -> None:
    case = case_of(tmp_path, BARGAINED)
    evidence = play_in_memory(case.task, case.gold.oracle or ())

    def differs(question: Question) -> Opinion:
        is_seller = question.name == "rating_seller"
        return Opinion(None, ("1", "2", "4")) if is_seller else Opinion("5", ("5",) * 3)

    metrics = score_evidence(case.task, case.gold, evidence, differs).metrics
    assert (metrics["rating_seller"], metrics["rating_buyer"]) == (2, 5)
    assert metrics["task_completion"] == 0.7


def test_a_dialogue_that_only_the_judges_provider_refuses_has_no_completion(tmp_path: Path) -> None:
    case = case_of(tmp_path, BARGAINED)
    evidence = play_in_memory(case.task, case.gold.oracle or ())

    def refuses(question: Question) -> Opinion:
        answer = None if question.texts["dialogue"] else "4"
        return Opinion(answer, (answer,) * 3)

    def outage(question: Question) -> Opinion:
        return Opinion(None, (None,) * 3)

    refused = score_evidence(case.task, case.gold, evidence, refuses)
    unknown = score_evidence(case.task, case.gold, evidence, outage)
    assert (refused.success, unknown.success) == (True, True)
    assert (refused.metrics["task_completion"], refused.metrics["rating_buyer"]) == (0.0, 0)
    assert (unknown.metrics["task_completion"], unknown.metrics["rating_buyer"]) == (None, None)


def test_a_party_receives_everything_since_its_own_last_turn(tmp_path: Path) -> None:
    world = Bargaining(copy_object(case_of(tmp_path, BARGAINED).task.initial_state))
    assert world.first_turn() == Handover("agent1", "")
    world.call(ToolCall("offer_price", {"price": 12.5, "reason": "new"}))
    assert world.turn_after_answer("agent1", "Well?") == Handover(
        "agent2", "agent1 (seller) offers 12.5: new\nagent1 (seller) says: Well?"
    )
    assert isinstance(world.call(ToolCall("accept_offer", {})), Failure), (
        "the offer is from the same side"
    )
    third = world.turn_after_answer("agent2", "")
    assert third is not None
    assert third.text.endswith("Well?")
    world.call(ToolCall("accept_offer", {}))
    assert world.turn_after_answer("agent3", "") is None
    assert world.state["agreement"] == {"price": 12.5, "seller": "agent1", "buyer": "agent3"}


@pytest.mark.parametrize(
    "price",
    [10**15 + 1, 10**400, 1.7e308, 0, -1],
    ids=["above", "integer", "float", "zero", "negative"],
)
@pytest.mark.parametrize(
    ("tool", "name"), [("offer_price", "price"), ("reject_and_counter", "counter_price")]
)
def test_a_price_of_which_reports_cannot_compute_means_is_refused(
    tmp_path: Path, tool: str, name: str, price: float
) -> None:
    world = Bargaining(copy_object(case_of(tmp_path, BARGAINED).task.initial_state))
    world.first_turn()
    world.call(ToolCall("offer_price", {"price": 1e15, "reason": "new"}))
    world.turn_after_answer("agent1", "")
    world.turn_after_answer("agent2", "")
    refused = world.call(ToolCall(tool, {name: price, "reason": "new"}))
    assert isinstance(refused, Failure)
    assert (refused.code, refused.message) == (
        "bad_price",
        "A price must be a positive number up to 1e+15.",
    )
    world.call(ToolCall("accept_offer", {}))
    assert world.state["agreement"] == {"price": 1e15, "seller": "agent1", "buyer": "agent3"}


def test_a_negotiation_ends_when_only_one_side_remains(tmp_path: Path) -> None:
    world = Bargaining(copy_object(case_of(tmp_path, BARGAINED).task.initial_state))
    world.first_turn()
    assert world.turn_after_end("agent1") == Handover("agent2", "")
    assert world.turn_after_end("agent2") is None


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("", "the argument must be"),
        ("chess:/x", "the argument must be"),
        ("database:/x", "there is no such file"),
        ("bargaining", "the argument must be"),
        ("werewolf:/nowhere", "cannot be read"),
    ],
)
def test_an_unknown_scenario_is_rejected(argument: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        load_suite(f"marble:{argument}")


@pytest.mark.parametrize(
    ("record", "change", "complaint"),
    [
        (BARGAINED, {"scenario": "research"}, "scenario must be bargaining, not research"),
        (BARGAINED, {"agents": []}, "agents"),
        (BARGAINED, {"coordinate_mode": "star"}, "coordinate_mode: must be empty or graph"),
        (
            BARGAINED,
            {"relationships": [["agent1", "agent2", "parent"]]},
            "relationships: must link all parties.*: agent1 and agent3",
        ),
        (BARGAINED, {"agents": [{"agent_id": "agent1", "profile": "x"}]}, "seller or buyer"),
    ],
)
def test_an_invalid_record_is_rejected_with_its_field(
    tmp_path: Path, record: dict[str, Any], change: dict[str, Any], complaint: str
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record | change) + "\n")
    with pytest.raises(InputError, match=complaint):
        load_suite(f"marble:bargaining:{path}")


def test_roles_are_read_from_a_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("roles: [wolf, villager, seer]\nrandomize_roles: True\n")
    cases = load_suite(f"marble:werewolf:{path}").cases
    assert {len(case.task.seats) for case in cases} == {3}
    for roles in ("[wolf, dragon]", "[wolf, {villager: 2}]"):
        path.write_text(f"roles: {roles}\n")
        with pytest.raises(InputError, match="roles must be a list"):
            load_suite(f"marble:werewolf:{path}")


def test_a_party_that_leaves_does_not_succeed_even_if_the_others_agree(tmp_path: Path) -> None:
    case = case_of(tmp_path, BARGAINED)
    left: list[Move] = [{"give_up": "I have to go."}]
    offered: list[Move] = [
        {
            "seat": "agent2",
            "tool_name": "offer_price",
            "args": {"price": 10, "reason": "it is fair"},
        },
        {"seat": "agent2", "submit": "There."},
        {"seat": "agent3", "tool_name": "accept_offer", "args": {}},
        {"seat": "agent3", "submit": "Agreed."},
    ]
    score = play(case, [*left, *offered])
    assert (score.success, score.metrics["price"]) == (False, 10)
