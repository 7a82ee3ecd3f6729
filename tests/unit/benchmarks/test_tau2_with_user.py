"""Tests of τ²-bench with a user: oracles, scripted users, criteria and databases."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.tau2.scorer import count_steps
from fumehood.benchmarks.tau2.world import Tau2Company
from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.task import Case
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_data import benchmark_data
from tests.parts.installed import installed

installed("inspect_evals")

SAMPLED_TASKS = {"airline": 5, "retail": 4, "banking": 4, "mock": 9, "telecom_user": 6}
"""Number of tasks per domain in this test; ``make benchmarks`` plays all of them."""
INCOMPLETE_GOLD = {
    "update_task_with_history_and_env_assertions",
    "update_task_with_user_tools",
}
"""Tasks of mock whose gold does not solve them, as in the original."""


@cache
def cases_of(suite: str) -> tuple[Case, ...]:
    return load_suite(suite).cases


def some_of(domain: str) -> Sequence[Case]:
    cases = cases_of(f"tau2:{domain}")
    return cases[:: len(cases) // SAMPLED_TASKS[domain]]


def success(case: Case, evidence: Evidence) -> bool | None:
    return score_evidence(case.task, case.gold, evidence).success


def gold(case: Case) -> tuple[Move, ...]:
    assert case.gold.oracle is not None
    return case.gold.oracle


def silent_agent(case: Case) -> tuple[Move, ...]:
    """Return the moves of a scripted user whose agent does nothing."""
    return tuple({"seat": "user", **move} for move in case.task.scripts["user"])


def play(case: Case, moves: Sequence[Move]) -> bool | None:
    return success(case, play_in_memory(case.task, moves))


@pytest.mark.slow
@pytest.mark.parametrize("domain", list(SAMPLED_TASKS))
def test_the_oracle_solves_its_task(domain: str) -> None:
    solved = {case.task.task_id: play(case, gold(case)) for case in some_of(domain)}
    assert {name for name, right in solved.items() if not right} <= INCOMPLETE_GOLD


@pytest.mark.parametrize("domain", list(SAMPLED_TASKS))
def test_a_silent_agent_solves_only_tasks_without_changes_or_messages(domain: str) -> None:
    for case in some_of(domain):
        databases = [item for item in case.gold.criteria if item["op"] == "database"]
        other_criteria = {item["op"] for item in case.gold.criteria} - {"talked", "database"}
        unchanged = all(item["equals"] in ({"changes": []}, start(case)) for item in databases)
        assert play(case, silent_agent(case)) is (unchanged and not other_criteria)


def start(case: Case) -> Mapping[str, object]:
    return {key: case.task.initial_state.get(key) for key in ("agent", "user")}


def test_an_omitted_or_additional_change_fails_the_task() -> None:
    (case,) = (case for case in cases_of("tau2:mock") if case.task.task_id == "create_task_1")
    moves = gold(case)
    call = next(move for move in moves if "tool_name" in move)
    assert play(case, moves) is True
    assert play(case, [move for move in moves if move is not call]) is False
    assert play(case, [call, *moves]) is False


@pytest.mark.parametrize(
    ("words", "right"),
    [("$1,628 in all.", True), ("$1628 IN ALL", True), ("1 628", False), ("", False)],
)
def test_commas_do_not_matter_in_required_texts(words: str, right: bool) -> None:
    (case,) = (case for case in cases_of("tau2:airline") if case.task.task_id == "7")
    moves = [
        {**move, "submit": words} if move.get("seat") == "agent" and "submit" in move else move
        for move in gold(case)
    ]
    assert play(case, moves) is right


@pytest.mark.parametrize(
    ("last", "right"),
    [("###STOP###", True), ("###TRANSFER###", True), ("Bye.", False), ("", False)],
)
def test_only_a_stop_text_of_the_user_ends_a_conversation_properly(last: str, right: bool) -> None:
    (case,) = (case for case in cases_of("tau2:mock") if case.task.task_id == "create_task_1")
    *moves, end = gold(case)
    assert play(case, [*moves, {**end, "submit": last}, {"give_up": "tired"}]) is right


def test_unlocked_tools_are_part_of_the_state() -> None:
    case = next(case for case in cases_of("tau2:banking") if "unlock" in json.dumps(gold(case)))
    kept = play_in_memory(case.task, gold(case)).final_state["kept"]
    assert "agent_unlocked_tools" in json.dumps(kept)


@pytest.mark.slow
def test_a_search_that_times_out_is_rejected_and_the_next_one_works() -> None:
    case = cases_of("tau2:banking")[0]
    slow: Move = {"tool_name": "grep", "args": {"pattern": "(?:(?:[a-z ]+)+)+#"}}
    fast: Move = {"tool_name": "grep", "args": {"pattern": "dispute"}}
    evidence = play_in_memory(case.task, ({"seat": "user", "submit": "Hi."}, slow, fast))
    first, second = evidence.calls
    assert first.failure is not None
    assert second.output is not None
    assert "dispute" in str(second.output["result"])


def test_the_seats_have_different_tools() -> None:
    agent, user = cases_of("tau2:telecom_user")[0].task.seats
    assert agent.tools is not None
    assert user.tools is not None
    assert not {*agent.tools} & {*user.tools}
    assert (len(agent.tools), len(user.tools)) == (13, 30)


def test_a_state_contains_only_the_changes_to_its_database() -> None:
    for domain in ("airline", "retail", "banking"):
        assert max(len(json.dumps(case.task.initial_state)) for case in some_of(domain)) < 10_000


class FixedJudge:
    """Answers every question in the same way and records them."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Opinion:
        """Record the question and return the fixed answer."""
        self.questions.append(question)
        return Opinion(self.answer, (self.answer,))


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "right"), [("yes", True), ("no", False), (None, None)])
def test_a_judge_decides_assertions_in_natural_language(
    answer: str | None, right: bool | None
) -> None:
    case = _case_with_assertions()
    judge = FixedJudge(answer)
    score = score_evidence(case.task, case.gold, play_in_memory(case.task, gold(case)), judge)
    assert score.success is right
    assert judge.questions
    assert score.checks["check_1:database"] is True


def test_no_judge_is_asked_when_a_rule_has_failed() -> None:
    case, judge = _case_with_assertions(), FixedJudge("yes")
    unfinished = play_in_memory(case.task, gold(case)[:-1])
    assert score_evidence(case.task, case.gold, unfinished, judge).success is False
    assert judge.questions == []


def _case_with_assertions() -> Case:
    cases = cases_of(f"tau2:retail:{benchmark_data('tau2/retail')}")
    return next(
        case for case in cases if any(item["op"] == "opinion" for item in case.gold.criteria)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "tasks", "solved"), [("airline", 50, 3), ("retail", 114, 4), ("mock", 10, 8)]
)
def test_a_folder_of_published_data_replaces_the_packages_data(
    folder: str, tasks: int, solved: int
) -> None:
    cases = cases_of(f"tau2:{folder}:{benchmark_data('tau2/' + folder)}")
    assert len(cases) == tasks
    step = 1 if folder == "mock" else 20
    assert [play(case, gold(case)) for case in cases[::step]].count(True) == solved


def test_a_state_with_another_database_digest_is_rejected(tmp_path: Path) -> None:
    case = cases_of("tau2:airline")[0]
    state = {**case.task.initial_state, "database": "0" * 64}
    with pytest.raises(SpecError, match="database"):
        Tau2Company(state)


@pytest.mark.parametrize(("errors", "right"), [(9, True), (10, False)])
def test_ten_failed_calls_of_both_seats_fail_a_conversation(errors: int, right: bool) -> None:
    (case,) = (case for case in cases_of("tau2:mock") if case.task.task_id == "create_task_1")
    invented: Move = {"seat": "agent", "tool_name": "invented", "args": {}}
    of_user: Move = {**invented, "seat": "user"}
    first, *rest = gold(case)
    assert play(case, [of_user, *[invented] * (errors - 1), first, *rest]) is right


def test_a_message_with_calls_is_two_steps_and_a_text_is_one() -> None:
    (case,) = (case for case in cases_of("tau2:mock") if case.task.task_id == "create_task_1")
    reads: list[Move] = [{"seat": "agent", "tool_name": "get_users", "args": {}}] * 97
    evidence = play_in_memory(case.task, [*reads, *gold(case)])
    assert count_steps(evidence) == 2 * 98 + 3
    assert success(case, evidence) is True
    evidence = play_in_memory(case.task, [reads[0], *reads, *gold(case)])
    assert (count_steps(evidence), success(case, evidence)) == (201, False)
    calls = tuple(
        replace(call, model_calls_before=1 + number // 50)
        for number, call in enumerate(evidence.calls)
    )
    assert count_steps(replace(evidence, calls=calls)) == 2 * 2 + 3


def test_single_task_files_replace_the_list_of_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "mock"
    shutil.copytree(benchmark_data("tau2/mock"), folder)
    tasks = json.loads((folder / "tasks.json").read_text())
    (folder / "tasks").mkdir()
    for task in tasks[:2]:
        (folder / "tasks" / f"task_{task['id']}.json").write_text(json.dumps(task))
    names = [case.task.task_id for case in cases_of(f"tau2:mock:{folder}")]
    assert names == sorted(task["id"] for task in tasks[:2])
