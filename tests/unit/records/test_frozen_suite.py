"""A stored suite gives the same tasks: seats, tools, turns, conversation and gold."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.task import Case, Suite
from fumehood.records.frozen_suite import freeze_suite, read_frozen_suite, suite_digest
from tests.parts.tasks import crud_task

TASK = crud_task("t1")
SEAT = TASK.seats[0]
TURNS = (Turn("and then?", ("get",)), Turn("at last?", ()))
TALK = ConversationSpec("round_robin", {"turns_max": 3})


@pytest.mark.parametrize(
    "task",
    [
        replace(TASK, seats=(replace(SEAT, tools=("get", "list")),)),
        replace(TASK, seats=(replace(SEAT, tools=()),)),
        replace(TASK, seats=(replace(SEAT, tools=None),)),
        replace(TASK, seats=(replace(SEAT, tools=("get",), further_turns=TURNS),)),
        replace(TASK, seats=(SEAT, replace(SEAT, name="user")), conversation=TALK),
        replace(TASK, policy={"irreversible": [{"tool_name": "close_account"}]}),
        replace(
            TASK,
            seats=(SEAT, replace(SEAT, name="user")),
            conversation=TALK,
            counterparts={"user": "script"},
            scripts={"user": ({"say": "hello"}, {"say": "bye"})},
        ),
    ],
)
def test_a_stored_task_is_read_unchanged(task: object) -> None:
    assert isinstance(task, type(TASK))
    gold = Gold("native", ({"op": "equals"},), False, ({"tool_name": "get"},))
    with_steps = replace(gold, oracle=None, procedure={"steps": [{"call": "get"}]})
    suite = Suite("s", tuple(Case(task, each) for each in (gold, Gold("native", ()), with_steps)))
    read = read_frozen_suite("s", freeze_suite(suite).encode("ascii"))
    assert read == suite
    assert suite_digest(read) == suite_digest(suite)


@pytest.mark.parametrize("field", ["task_id", "seats", "gold", "fault_plan"])
def test_a_line_without_a_field_is_an_input_error(field: str) -> None:
    line = json.loads(freeze_suite(Suite("s", (Case(TASK, Gold("native", ())),))))
    del line[field]
    with pytest.raises(InputError, match=r"suite\.jsonl cannot be read"):
        read_frozen_suite("s", json.dumps(line).encode("ascii"))
