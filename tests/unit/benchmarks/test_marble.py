"""MARBLE's scenarios: labels, an agreement, a won game; each by rule, ratings by a judge beside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.in_memory import Move, play_in_memory
from fumehood.benchmarks.marble.scorer import named_causes
from fumehood.benchmarks.marble.world_bargaining import Bargaining
from fumehood.benchmarks.table import load_suite
from fumehood.core.conversation import Handover
from fumehood.core.errors import InputError
from fumehood.core.json_values import copy_object
from fumehood.core.task import Case
from fumehood.core.tools import Failure, ToolCall
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.table import score_evidence
from tests.parts.benchmark_data import benchmark_data
from tests.unit.benchmarks.judging import play

LABELS = ["INSERT_LARGE_DATA", "LOCK_CONTENTION", "VACUUM"]
DIAGNOSED: dict[str, Any] = {
    "scenario": "database",
    "task_id": 1,
    "coordinate_mode": "",
    "environment": {
        "init_sql": "CREATE TABLE songs (id SERIAL PRIMARY KEY);\nINSERT INTO songs VALUES (7);\n"
    },
    "task": {
        "content": "It is slow.",
        "labels": LABELS,
        "root_causes": ["VACUUM", "LOCK_CONTENTION"],
        "number_of_labels_pred": 2,
    },
    "agents": [
        {"type": "BaseAgent", "agent_id": f"agent{number}", "profile": f"You know about {label}."}
        for number, label in enumerate(LABELS, 1)
    ],
}
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
    """Return how many the oracle solves, and how many doing nothing does."""
    oracle = sum(play(case, case.gold.oracle or ()).success is True for case in cases)
    return oracle, sum(play(case, ({"submit": ""},)).success is True for case in cases)


@pytest.mark.parametrize("scenario", ["database", "bargaining"])
def test_published_records_are_solved_by_their_oracles_and_by_nothing_else(scenario: str) -> None:
    path = benchmark_data(f"marble/{scenario}_first10.jsonl")
    assert solved(load_suite(f"marble:{scenario}:{path}").cases) == (10, 0)


def test_games_are_won_by_their_oracles_and_by_nobody_who_does_nothing() -> None:
    cases = load_suite("marble:werewolf").cases
    assert solved(cases) == (10, 0)
    assert {case.gold.criteria[0]["side"] for case in cases} == {"wolves", "villagers"}
    assert len({str(case.task.initial_state) for case in cases}) == 10


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Root causes: VACUUM, LOCK_CONTENTION", 1.0),
        ("**Root cause:** `vacuum`", 0.5),
        ("Root causes: VACUUM, VACUUM, LOCK_CONTENTION", 1.0),
        ("Root causes: VACUUM\nRoot causes: INSERT_LARGE_DATA", 0.0),
        ("Root causes: VACUUM, LOCK_CONTENTION, INSERT_LARGE_DATA", 0.0),
        ("Root causes: VACUUM, GREMLINS", 0.0),
        ("VACUUM and LOCK_CONTENTION", 0.0),
        ("Root causes:", 0.0),
    ],
)
def test_a_cause_counts_where_it_is_named_in_the_form(
    tmp_path: Path, words: str, found: float
) -> None:
    score = play(case_of(tmp_path, DIAGNOSED), [{"submit": words}])
    assert score.metrics["causes_found"] == found
    assert score.success is (found == 1.0)


def test_no_text_names_more_causes_than_there_may_be() -> None:
    assert named_causes("Root causes: a, b", ["A", "B"], 2) == ("A", "B")
    assert named_causes("Root causes: a, b", ["A", "B"], 1) == ()


def test_a_planner_sends_experts_who_query_what_there_is(tmp_path: Path) -> None:
    case = case_of(tmp_path, DIAGNOSED)
    ask: Move = {"seat": "agent2", "tool_name": "query_db", "args": {"sql": "SELECT id FROM songs"}}
    live: Move = {
        "seat": "agent2",
        "tool_name": "query_db",
        "args": {"sql": "SELECT * FROM pg_locks"},
    }
    moves: list[Move] = [
        {"submit": "@agent2: look at the locks"},
        ask,
        live,
        {"seat": "agent2", "submit": "It is LOCK_CONTENTION."},
        {"submit": "Root causes: LOCK_CONTENTION, VACUUM"},
    ]
    evidence = play_in_memory(case.task, moves)
    assert evidence.exchanges[0].output == {"rows": [["7"]]}
    failure = evidence.exchanges[1].failure
    assert failure is not None
    assert failure.code == "not_recorded"
    assert [one.seat for one in evidence.said] == ["planner", "agent2", "planner"]
    assert score_evidence(case.task, case.gold, evidence).success is True


def rated(question: Question) -> Opinion:
    answer = "4" if question.name == "rating_buyer" else None
    return Opinion(answer, (answer, answer, None), {"calls": 3})


def test_an_agreement_decides_and_ratings_stand_beside(tmp_path: Path) -> None:
    case = case_of(tmp_path, BARGAINED)
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    score = score_evidence(case.task, case.gold, evidence, rated)
    assert score.success is True
    assert score.metrics["price"] == 10
    assert (score.metrics["rating_buyer"], score.metrics["rating_seller"]) == (4, None)
    assert score.metrics["judge_calls"] == 6
    walked_out: list[Move] = [{"tool_name": "end_negotiation", "args": {}}, {"submit": ""}]
    assert (
        score_evidence(case.task, case.gold, play_in_memory(case.task, walked_out), rated).success
        is False
    )


def test_each_hears_what_was_said_and_done_since_its_own_words(tmp_path: Path) -> None:
    world = Bargaining(copy_object(case_of(tmp_path, BARGAINED).task.initial_state))
    assert world.open() == Handover("agent1", "")
    world.call(ToolCall("offer_price", {"price": 12.5, "reason": "new"}))
    assert world.heard("agent1", "Well?") == Handover(
        "agent2", "agent1 (seller) offers 12.5: new\nagent1 (seller) says: Well?"
    )
    assert isinstance(world.call(ToolCall("accept_offer", {})), Failure), "it is of the own side"
    third = world.heard("agent2", "")
    assert third is not None
    assert third.text.endswith("Well?")
    world.call(ToolCall("accept_offer", {}))
    assert world.heard("agent3", "") is None
    assert world.state["agreement"] == {"price": 12.5, "seller": "agent1", "buyer": "agent3"}


def test_a_table_with_one_side_left_is_over(tmp_path: Path) -> None:
    world = Bargaining(copy_object(case_of(tmp_path, BARGAINED).task.initial_state))
    world.open()
    assert world.left("agent1") == Handover("agent2", "")
    assert world.left("agent2") is None


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("", "say marble:"),
        ("chess:/x", "say marble:"),
        ("database", "say marble:"),
        ("werewolf:/nowhere", "cannot be read"),
    ],
)
def test_what_is_no_scenario_is_refused(argument: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        load_suite(f"marble:{argument}")


@pytest.mark.parametrize(
    ("record", "change", "complaint"),
    [
        (DIAGNOSED, {"scenario": "research"}, "is of the scenario research"),
        (DIAGNOSED, {"agents": []}, "agents"),
        (BARGAINED, {"agents": [{"agent_id": "agent1", "profile": "x"}]}, "seller or buyer"),
    ],
)
def test_what_cannot_be_used_of_a_record_is_named(
    tmp_path: Path, record: dict[str, Any], change: dict[str, Any], complaint: str
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record | change) + "\n")
    with pytest.raises(InputError, match=complaint):
        load_suite(f"marble:{record['scenario']}:{path}")


def test_roles_come_from_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("roles: [wolf, villager, seer]\nrandomize_roles: True\n")
    cases = load_suite(f"marble:werewolf:{path}").cases
    assert {len(case.task.seats) for case in cases} == {3}
    for roles in ("[wolf, dragon]", "[wolf, {villager: 2}]"):
        path.write_text(f"roles: {roles}\n")
        with pytest.raises(InputError, match="roles must be a list"):
            load_suite(f"marble:werewolf:{path}")


@pytest.mark.parametrize("causes", [[], ["WEATHER"]])
def test_a_database_whose_causes_are_no_labels_is_refused(
    tmp_path: Path, causes: list[str]
) -> None:
    task = {**DIAGNOSED["task"], "root_causes": causes}
    with pytest.raises(InputError, match=r"task\.root_causes: must be some of INSERT_LARGE_DATA"):
        case_of(tmp_path, {**DIAGNOSED, "task": task})


def test_who_leaves_has_not_won_whatever_the_others_do(tmp_path: Path) -> None:
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
