"""BFCL: its own checker over calls that went through our door."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.benchmarks.bfcl.checker import rendered
from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.benchmarks.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Case
from fumehood.third_party.process import checker
from tests.parts.installed import installed
from tests.unit.benchmarks.judging import play

installed("bfcl_eval", "mpmath")

MULTI_TURN = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
SAMPLE = slice(0, 200, 50)


def cases(category: str) -> Sequence[Case]:
    return Bfcl().load(category).cases


def gold(case: Case) -> tuple[Move, ...]:
    assert case.gold.oracle is not None
    return case.gold.oracle


def without_last_call(moves: Sequence[Move]) -> Iterable[Move]:
    last = max(index for index, move in enumerate(moves) if "tool_name" in move)
    return [*moves[:last], *moves[last + 1 :]]


@pytest.mark.parametrize("category", MULTI_TURN)
def test_gold_calls_solve_what_nothing_and_one_call_less_do_not(category: str) -> None:
    every = cases(category)
    assert len(every) == 200
    for case in every[SAMPLE]:
        assert play(case, gold(case)).success is True, case.task.task_id
        assert play(case, ()).success is False, case.task.task_id
        assert play(case, without_last_call(gold(case))).success is False, case.task.task_id


def test_a_failed_attempt_leaves_nothing_behind() -> None:
    for case in cases("multi_turn_base")[:6]:
        moves = gold(case)
        assert play(case, without_last_call(moves)).success is False
        assert play(case, moves).success is True
        assert play(case, (*moves[:1], *moves)).success is not None
        assert play(case, moves).success is True


def test_functions_that_are_missing_come_with_their_turn() -> None:
    case = cases("multi_turn_miss_func")[0]
    seat = case.task.seats[0]
    (turn,) = [turn for turn in seat.further_turns if turn.tools]
    assert turn.tools == ("sort",)
    assert turn.instruction.startswith("I have updated some more functions")


def test_a_function_may_be_called_before_it_is_told_of_as_bfcl_has_it() -> None:
    # Its gold calls `tail` two turns before the user brings it.
    case = next(case for case in cases("multi_turn_miss_func") if case.task.task_id.endswith("_49"))
    assert play(case, gold(case)).success is True


def test_what_an_agent_writes_is_never_evaluated(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    tmp_path.chmod(0o777)
    evil = f"__import__('os').system('touch {sign}')"
    case = cases("multi_turn_base")[0]
    attempts: tuple[Move, ...] = (
        {"tool_name": evil, "args": {}},
        {"tool_name": "cd", "args": {"folder": evil}},
        {"tool_name": "cd", "args": {f"folder={evil}, x": 1}},
        {"tool_name": "echo", "args": {"content": f"') or {evil} or ('", "file_name": "f"}},
        {"tool_name": "ls", "args": {"a": {evil: [evil]}}},
    )
    assert play(case, (*attempts, *gold(case))).success is not None
    assert not sign.exists()


def test_calls_are_written_down_as_literals() -> None:
    assert rendered("cd", {"folder": "a'b\\\n", "deep": [None, True, 1.5]}) == [
        'cd(folder="a\'b\\\\\\n", deep=[None, True, 1.5])'
    ]
    assert (
        rendered("cd", {"class": 1})
        == rendered("cd", {"a b": 1})
        == rendered("os.system", {})
        == []
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user to give up")
def test_the_checker_is_nobody() -> None:
    process = checker("bfcl")
    status = Path(f"/proc/{process.process_id}/status").read_text(encoding="ascii")
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert told["Uid"].split() == ["65532"] * 4
    assert (told["NoNewPrivs"], int(told["CapEff"], 16)) == ("1", 0)


def test_a_power_that_would_take_for_ever_is_refused() -> None:
    case = next(case for case in cases("multi_turn_base") if "MathAPI" in _classes(case))
    endless: Move = {"tool_name": "power", "args": {"base": 9, "exponent": 10**12}}
    assert play(case, (endless, *gold(case))).success is True


def test_the_order_of_a_set_is_not_in_a_trace() -> None:
    case = next(case for case in cases("multi_turn_base") if "TicketAPI" in _classes(case))
    states = case.task.initial_state["initial_config"]
    assert isinstance(states, dict)
    tickets: JsonObject = {
        "ticket_queue": [{"id": 1, "status": "Open"}],
        "current_user": "me",
        "ticket_counter": 2,
    }
    state: JsonObject = {
        **case.task.initial_state,
        "initial_config": {**states, "TicketAPI": tickets},
    }
    fields: JsonObject = {f"field{number}": "x" for number in range(9)}
    edit: Move = {"tool_name": "edit_ticket", "args": {"ticket_id": 1, "updates": fields}}
    (refused,) = play_in_memory(replace(case.task, initial_state=state), (edit,)).exchanges
    assert refused.output == {"error": f"Invalid fields for update: {', '.join(fields)}"}


def test_it_names_its_categories() -> None:
    with pytest.raises(InputError, match="CATEGORY is one of multi_turn_base"):
        Bfcl().load("multi_turn")


def _classes(case: Case) -> list[str]:
    classes = case.task.initial_state["involved_classes"]
    assert isinstance(classes, list)
    return [str(name) for name in classes]
