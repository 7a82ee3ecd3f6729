"""os_interaction: what is read from a checkout, and how answers are evaluated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.osinteraction.verify import is_right
from fumehood.benchmarks.registry import load_suite
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind
from tests.parts.os_interaction import EQUAL, LINES, VARIABLE, write_checkout

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def test_a_question_is_answered_from_the_state_at_the_beginning(tmp_path: Path) -> None:
    case = load_suite(f"os-interaction:{write_checkout(tmp_path)}").cases[0]
    assert case.task.task_id == "std-001-own-0"
    assert case.task.tags["type"] == "question"
    assert case.task.seats[0].budget[BudgetKind.CALLS] == 7
    criterion: dict[str, Any] = dict(case.gold.criteria[0])
    # Each box would draw another number, so it is drawn when the image is built.
    (line,) = criterion["workspace_lines"]
    assert json.loads(line.removeprefix("RUN ")) == [
        "bash",
        "-c",
        "seq $((RANDOM % 90 + 10)) > /srv/list\n",
    ]
    assert criterion["setup"] == []
    call, answer = case.gold.oracle or ()
    assert call["args"] == {"command": "bash -c 'wc -l < /srv/list' 2>/dev/null"}
    assert answer == {"submit_result": "output"}


def test_gold_is_no_part_of_the_task(tmp_path: Path) -> None:
    case = load_suite(f"os-interaction:{write_checkout(tmp_path)}").cases[1]
    assert case.task.initial_state["start"] == "place=here"
    assert case.gold.oracle == ({"submit": "here"},)
    known = json.dumps([case.task.initial_state["task"], case.task.seats[0].instruction])
    assert "evaluation" not in known
    assert set(case.task.initial_state) == {"task", "changed", "output_chars_max", "start"}


@pytest.mark.parametrize("create", [None, [], [None, {"file": "x"}]])
def test_a_malformed_create_is_read_as_in_the_original(tmp_path: Path, create: Any) -> None:
    write_checkout(tmp_path, [{**VARIABLE, "create": create}])
    (case,) = load_suite(f"os-interaction:{tmp_path}:std").cases
    assert case.gold.criteria[0]["setup"] == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"evaluation": {"match": "x"}}, "description"),
        ({**LINES, "evaluation": {}}, "must have match or check"),
        ({**LINES, "evaluation": {"check": None}}, "example: is required"),
        ({**VARIABLE, "create": {"local": "windows"}}, "create.local"),
        ({**VARIABLE, "create": {"init": {"file": "none.sh"}}}, "none.sh cannot be read"),
        ({**VARIABLE, "create": {"init": {"language": "c", "code": "x"}}}, "language"),
    ],
)
def test_an_error_names_the_file_and_the_field(
    tmp_path: Path, record: dict[str, Any], reason: str
) -> None:
    write_checkout(tmp_path, [VARIABLE, record])
    with pytest.raises(InputError, match=rf"own\.json\[1\]: .*{reason}"):
        load_suite(f"os-interaction:{tmp_path}")


@pytest.mark.parametrize("argument", ["", "nowhere", "{checkout}:train"])
def test_another_argument_is_refused(tmp_path: Path, argument: str) -> None:
    place = argument.format(checkout=write_checkout(tmp_path))
    with pytest.raises(InputError, match=r"use os-interaction:CHECKOUT\[:std\|:dev\]"):
        load_suite(f"os-interaction:{place}")


@pytest.mark.parametrize(
    ("match", "answer", "is_accepted"),
    [
        ({"answer": "here", "strip": True}, " here\n", True),
        ({"answer": "here", "strip": True}, "there", False),
        ({"regex": "^h.*e$", "strip": True}, "hare", True),
    ],
)
def test_a_known_answer_is_compared(match: Any, answer: str, is_accepted: bool) -> None:
    assert is_right({"match": match}, answer) is is_accepted


@needs_bash
def test_checks_get_the_answer_and_what_earlier_checks_printed() -> None:
    task: dict[str, Any] = {
        "match": None,
        "example": ["bash", "echo 4; exit $#; echo"],
        "checks": [["bash", 'printf %s "$1"'], ["python", EQUAL]],
    }
    assert is_right(task, "4")
    task["checks"] = [None, ["python", EQUAL]]
    assert not is_right(task, "4")  # The example gets the answer too, so its status is 1.
    task["example"] = ["bash", "echo 4"]
    assert is_right(task, "4")
    assert not is_right(task, "5")
