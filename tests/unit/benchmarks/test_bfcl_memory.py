"""Tests of BFCL's memory categories: facts from conversations answer later questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fumehood.benchmarks.bfcl.memory_tasks import SCENARIOS
from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.task import Case
from tests.parts.installed import installed
from tests.unit.benchmarks.scoring import play

installed("bfcl_eval", "mpmath", "overrides", "rank_bm25")

BACKENDS = ("memory_kv", "memory_rec_sum", "memory_vector")
SILENT: Move = {"submit": ""}
each_backend = pytest.mark.parametrize("category", BACKENDS)


def cases(argument: str) -> Sequence[Case]:
    return Bfcl().load(argument).cases


@each_backend
def test_the_right_answer_solves_a_task_and_the_no_op_does_not(category: str) -> None:
    category_cases = cases(category)
    assert len(category_cases) == 155
    for case in category_cases[::31]:
        assert play(case, case.gold.oracle or ()).success is True, case.task.task_id
        assert play(case, ()).success is False


def test_the_conversations_precede_the_question_in_order() -> None:
    chats = {case.task.task_id: case for case in cases("memory_kv:chats")}
    assert list(chats) == list(SCENARIOS)
    turns = {name: 1 + len(case.task.seats[0].further_turns) for name, case in chats.items()}
    assert sum(turns.values()) == 323
    question = next(case for case in cases("memory_kv") if "customer" in case.task.task_id)
    seat, chat = question.task.seats[0], chats["customer"].task.seats[0]
    assert (seat.instruction, seat.further_turns[:-1]) == (chat.instruction, chat.further_turns)
    assert seat.further_turns[-1].instruction.endswith("What is my first name?")
    assert (
        sum(turn.instruction.startswith("[A new conversation") for turn in seat.further_turns) == 10
    )


def test_a_part_of_a_longer_number_is_not_an_answer() -> None:
    case = next(
        case
        for case in cases("memory_rec_sum")
        if case.task.task_id == "memory_rec_sum_1-customer-1"
    )
    silent = [SILENT] * len(case.task.seats[0].further_turns)
    answers = {
        "You are 35, I believe.": True,
        "thirty five": True,
        "135": False,
        "I do not know": False,
    }
    for answer, right in answers.items():
        assert play(case, [*silent, {"submit": answer}]).success is right, answer


def test_an_agent_that_gives_up_before_the_question_fails() -> None:
    case = cases("memory_kv")[0]
    assert (
        play(
            case, [{"submit": str(case.gold.criteria[0]["ground_truth"])}, {"give_up": ""}]
        ).success
        is False
    )


def test_conversations_without_a_question_are_ungraded() -> None:
    assert play(cases("memory_kv:chats")[0], ()).success is None


@pytest.mark.parametrize(
    ("category", "write"),
    [
        (
            "memory_kv",
            {"tool_name": "core_memory_add", "args": {"key": "first_name", "value": "Michael"}},
        ),
        (
            "memory_rec_sum",
            {"tool_name": "memory_append", "args": {"text": "He is called Michael."}},
        ),
        (
            "memory_vector",
            {"tool_name": "core_memory_add", "args": {"text": "He is called Michael."}},
        ),
    ],
)
def test_a_written_memory_is_part_of_the_question_task(
    category: str, write: Move, tmp_path: Path
) -> None:
    for case in cases(f"{category}:chats"):
        closed = {"kind": "closed", "final_state": play_in_memory(case.task, (write,)).final_state}
        shown = {"row": {}, "events": [closed]}
        (tmp_path / f"{case.task.task_id}.json").write_text(json.dumps(shown), encoding="utf-8")
    questions = cases(f"{category}:{tmp_path}")
    assert len(questions) == 155
    assert all("Michael" in case.task.seats[0].instruction for case in questions)
    assert not any(case.task.seats[0].further_turns for case in questions)


def test_bfcls_own_snapshots_are_read(tmp_path: Path) -> None:
    for name in SCENARIOS:
        content = {"core_memory": {"a": "visible"}, "archival_memory": {"b": "hidden"}}
        (tmp_path / f"{name}_final.json").write_text(json.dumps(content), encoding="utf-8")
    case = cases(f"memory_kv:{tmp_path}")[0]
    assert "visible" in case.task.seats[0].instruction
    assert "hidden" not in case.task.seats[0].instruction
    look: Move = {"tool_name": "archival_memory_retrieve", "args": {"key": "b"}}
    (call,) = play_in_memory(case.task, (look,)).calls
    assert call.output == {"value": "hidden"}


def test_a_missing_or_invalid_memory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither student_final\.json nor student\.json"):
        cases(f"memory_kv:{tmp_path}")
    (tmp_path / "student_final.json").write_text('{"core_memory": []}', encoding="utf-8")
    with pytest.raises(InputError, match=r"student_final\.json: .*MemoryAPI_kv\.core_memory"):
        cases(f"memory_kv:{tmp_path}")
