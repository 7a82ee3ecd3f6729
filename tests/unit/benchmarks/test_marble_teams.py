"""Tests of MARBLE's research and coding: the published judge rates the result of a team."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.marble.judge_prompts import RATINGS
from fumehood.benchmarks.marble.prompt_files import PROMPTS_FILE
from fumehood.benchmarks.marble.team_result import MARK, SOLUTION
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.score import Score
from fumehood.core.task import Case
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.registry import score_evidence
from tests.parts.marble import record, write_checkout
from tests.unit.benchmarks.scoring import play

PARENTS = [["agent2", "agent1", "parent"], ["agent2", "agent3", "parent"]]
REPLIES = {
    "research": '{"innovation": 4, "safety": "5", "feasibility": 3}',
    "coding": '{"instruction_following": 2, "executability": 2, "consistency": 3, "quality": 9}',
    "planning": 'Well: {"rating": 2}',
    "communication": "I say 5.",
    "milestones": '[{"milestone": "a", "agents": ["agent1", "agent2"]}, {"milestone": "b"}]',
}


def case_of(folder: Path, options: str = "", **changes: Any) -> Case:
    one = record(**changes)
    suite = load_suite(f"marble:{one['scenario']}:{write_checkout(folder, one)}{options}")
    return suite.cases[0]


def judged(case: Case, moves: list[Move], **replies: str | None) -> Score:
    def ask(question: Question) -> Opinion:
        assert question.published
        asked.append(question.published)
        reply = {**REPLIES, **replies}[question.name]
        return Opinion(reply, (reply,))

    asked: list[str] = []
    evidence = play_in_memory(case.task, moves)
    score = score_evidence(case.task, case.gold, evidence, ask)
    assert not any("{result}" in text or "{task}" in text for text in asked)
    return score


def stated(seat: str = "agent1", text: str = "An idea.") -> Move:
    return {"seat": seat, "submit": f"{MARK} {text}"}


def test_ratings_of_a_result_decide_success_and_the_task_completion_score(tmp_path: Path) -> None:
    case = case_of(tmp_path, scenario="research")
    score = judged(case, [stated()])
    assert score.success is True
    expected = {
        "rating_innovation": 4,
        "rating_safety": 5,
        "rating_feasibility": 3,
        "task_completion": 0.8,
        "rating_planning": 2,
        "rating_communication": 5,
        "rating_coordination": 3.5,
        "milestones": 2,
        "milestone_kpi": pytest.approx(1 / 3),
    }
    assert {name: score.metrics[name] for name in expected} == expected
    assert judged(case, [stated()], research='{"innovation": 2}').success is False
    assert judged(case, [stated()], research=REPLIES["coding"]).success is False
    assert judged(case, [stated()], research=None).success is None


@pytest.mark.parametrize("scenario", ["research", "coding"])
def test_a_text_that_blocks_the_judge_gives_zero_and_not_a_gap(
    tmp_path: Path, scenario: str
) -> None:
    def ask(question: Question) -> Opinion:
        reply = None if "BLOCK" in str(question.published) else REPLIES[question.name]
        return Opinion(reply, (reply,))

    case = case_of(tmp_path, scenario=scenario)
    written: Move = {
        "seat": "agent1",
        "tool_name": "write_file",
        "args": {"path": SOLUTION, "content": "BLOCK"},
    }
    moves = [written] if scenario == "coding" else []
    evidence = play_in_memory(case.task, [*moves, stated(text="BLOCK")])
    score = score_evidence(case.task, case.gold, evidence, ask)
    assert score.success is False
    rated = {f"rating_{name}": 0 for name in RATINGS[scenario]}
    expected = {**rated, "task_completion": 0.0, "milestones": 0, "milestone_kpi": 0.0}
    assert {name: score.metrics.get(name) for name in expected} == expected


def test_a_team_without_milestones_has_a_share_of_zero(tmp_path: Path) -> None:
    score = judged(case_of(tmp_path, scenario="research"), [stated()], milestones="none")
    assert (score.metrics["milestones"], score.metrics["milestone_kpi"]) == (0, 0.0)


@pytest.mark.slow
def test_a_team_without_a_result_fails_for_every_reply_of_the_judge(tmp_path: Path) -> None:
    score = judged(case_of(tmp_path, scenario="research"), [{"submit": "No result."}])
    assert (score.success, score.metrics["task_completion"]) == (False, 0.0)


def test_a_result_without_a_judge_is_ungraded(tmp_path: Path) -> None:
    case = case_of(tmp_path, scenario="research")
    assert play(case, case.gold.oracle or ()).success is None
    assert play(case, ({"submit": ""},)).success is False


def test_the_program_of_a_team_is_rated_with_at_least_one_point(tmp_path: Path) -> None:
    case = case_of(tmp_path, scenario="coding")
    assert SOLUTION in str(case.gold.oracle)
    score = judged(case, list(case.gold.oracle or ()))
    assert (score.success, score.metrics["rating_quality"]) == (False, 1)
    assert score.metrics["task_completion"] == 0.4
    assert judged(case, [stated()]).success is False, "there is no program"


@pytest.mark.parametrize(
    ("mode", "relationships", "moves", "seats"),
    [
        ("star", None, [{"seat": "planner", "submit": "@agent2: think"}], "planner"),
        ("star", None, [], "planner"),
        ("chain", None, [{"seat": "agent1", "submit": "Go on."}], "agent2"),
        ("graph", None, [{"seat": "agent1", "submit": "@agent3: think"}], "agent3"),
        ("graph", [["agent1", "agent2", "knows"]], [{"seat": "agent1", "submit": "?"}], "agent2"),
        ("tree", PARENTS, [], "agent2"),
    ],
)
def test_each_coordination_mode_is_a_turn_policy(
    tmp_path: Path, mode: str, relationships: Any, moves: list[Move], seats: str
) -> None:
    changes = {"relationships": relationships} if relationships else {}
    answers: list[Move] = [{"seat": "agent2", "submit": "I thought."}] if mode == "star" else []
    case = case_of(tmp_path, f":mode={mode}", scenario="research", **changes)
    assert case.task.tags["coordination"] == mode
    score = judged(case, [*moves, *(answers if moves else []), stated(seats)])
    assert score.success is True
    by_record = case_of(tmp_path / "other", scenario="research", coordinate_mode=mode, **changes)
    assert by_record.task == case.task


def test_a_team_of_one_works_alone(tmp_path: Path) -> None:
    alone = [{"agent_id": "agent1", "profile": "Me."}]
    case = case_of(tmp_path, scenario="research", agents=alone, relationships=[])
    assert judged(case, [stated()]).success is True


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"coordinate_mode": "ring"}, "coordinate_mode: must be graph, star, chain, tree or empty"),
        ({"coordinate_mode": "tree"}, "without a parent: agent1, agent2, agent3"),
        ({"relationships": [["agent1", "agent9", "x"]]}, "agent1 and agent9 must both be agents"),
        ({"relationships": [["agent1", "agent1", "x"]]}, "must relate two members"),
        ({"agents": [{"agent_id": "a", "profile": ""}] * 2}, "the same agent_id"),
        (
            {
                "coordinate_mode": "star",
                "agents": [{"agent_id": "planner", "profile": ""}],
                "relationships": [],
            },
            "planner is the name of the star's own seat",
        ),
    ],
)
def test_a_record_that_makes_no_team_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        case_of(tmp_path, scenario="research", **change)
    assert "\n" not in str(caught.value)


def test_incomplete_checkouts_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path, record("research"), record("coding"))
    for suite, complaint in (
        (f"research:{folder}/multiagentbench/research/research_main.jsonl", "must be a checkout"),
        (f"research:{tmp_path}/none", "must be a checkout"),
        (f"bargaining:{folder}", "bargaining_main.jsonl: there is no such file"),
        (f"coding:{folder}:snapshot=x", "the argument must be"),
        (f"research:{folder}:snapshot={tmp_path}/none", "there is no snapshot"),
    ):
        with pytest.raises(InputError, match=complaint):
            load_suite(f"marble:{suite}")
    (folder / "marble/evaluator/evaluator.py").write_text("")
    with pytest.raises(InputError, match=r"code_quality_prompt_template must be a text with"):
        load_suite(f"marble:coding:{folder}")
    (folder / PROMPTS_FILE).write_text(json.dumps({"Graph": {"KPI": {"prompt": "{task}"}}}))
    with pytest.raises(InputError, match=r"Graph\.Planning\.prompt must be a text with the fields"):
        load_suite(f"marble:research:{folder}")
    (folder / PROMPTS_FILE).unlink()
    with pytest.raises(InputError, match="there is no such file"):
        load_suite(f"marble:research:{folder}")


def test_the_published_prompts_rate_both_sides_of_a_bargain(tmp_path: Path) -> None:
    parties = [
        {"agent_id": "agent1", "profile": "x", "role": "seller"},
        {"agent_id": "agent2", "profile": "x", "role": "buyer"},
    ]
    case = case_of(tmp_path, scenario="bargaining", agents=parties, relationships=[])
    side = {"effectiveness_of_strategies": 4, "progress_and_outcome": 5, "interaction_dynamics": 3}
    score = judged(
        case,
        list(case.gold.oracle or ()),
        rating_seller=json.dumps({"seller": side}),
        rating_buyer="no ratings",
    )
    assert score.success is True
    assert (score.metrics["rating_seller"], score.metrics["rating_buyer"]) == (4, 0)
    assert score.metrics["task_completion"] == 0.4, "an unreadable rating is 0"
    assert score.metrics["milestones"] == 2
