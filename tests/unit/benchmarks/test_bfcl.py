"""Tests of BFCL's multi-turn categories: its own checker scores calls made through the service."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fumehood.benchmarks.bfcl.checker import UNKNOWN_CALL, python_source
from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Case
from fumehood.core.user_ids import CHECKER_UID
from fumehood.third_party.process import CheckerProcess
from tests.parts.installed import installed
from tests.unit.benchmarks.scoring import play, score_episode, with_fault

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
def test_gold_solves_a_task_and_the_no_op_or_a_missing_call_does_not(category: str) -> None:
    category_cases = cases(category)
    assert len(category_cases) == 200
    for case in category_cases[SAMPLE]:
        assert play(case, gold(case)).success is True, case.task.task_id
        assert play(case, ()).success is False, case.task.task_id
        assert play(case, without_last_call(gold(case))).success is False, case.task.task_id


def test_a_number_of_too_many_digits_is_a_failed_call() -> None:
    case = next(
        case
        for case in cases("multi_turn_base")
        if "MathAPI" in case.task.initial_state["involved_classes"]  # type: ignore[operator]
    )
    digits = 10**4_199
    move: Move = {"tool_name": "multiply", "args": {"a": digits, "b": digits}}
    evidence = play_in_memory(case.task, [move, *gold(case)])
    assert evidence.calls[0].failure is not None
    assert evidence.calls[0].failure.code == "internal_error"
    assert all(call.failure is None for call in evidence.calls[1:])


@pytest.mark.slow
def test_attempts_do_not_affect_each_other() -> None:
    for case in cases("multi_turn_base")[:6]:
        moves = gold(case)
        assert play(case, without_last_call(moves)).success is False
        assert play(case, moves).success is True
        assert play(case, (*moves[:1], *moves)).success is not None
        assert play(case, moves).success is True


def test_a_withheld_function_is_added_in_its_turn() -> None:
    case = cases("multi_turn_miss_func")[0]
    seat = case.task.seats[0]
    (turn,) = [turn for turn in seat.further_turns if turn.tools]
    assert turn.tools == ("sort",)
    assert turn.instruction.startswith("I have updated some more functions")


def test_a_withheld_function_can_be_called_before_its_turn_as_in_bfcl() -> None:
    # The gold calls `tail` two turns before the user adds it.
    case = next(case for case in cases("multi_turn_miss_func") if case.task.task_id.endswith("_49"))
    assert play(case, gold(case)).success is True


def test_text_from_an_agent_is_never_evaluated(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    tmp_path.chmod(0o777)
    evil = f"__import__('os').system('touch {marker}')"
    case = cases("multi_turn_base")[0]
    attempts: tuple[Move, ...] = (
        {"tool_name": evil, "args": {}},
        {"tool_name": "cd", "args": {"folder": evil}},
        {"tool_name": "cd", "args": {f"folder={evil}, x": 1}},
        {"tool_name": "echo", "args": {"content": f"') or {evil} or ('", "file_name": "f"}},
        {"tool_name": "ls", "args": {"a": {evil: [evil]}}},
    )
    assert play(case, (*attempts, *gold(case))).success is not None
    assert not marker.exists()


def test_a_turn_of_an_invented_call_is_not_empty() -> None:
    # The gold of the other turns is unchanged; BFCL fails a turn without any call.
    case = cases("multi_turn_miss_func")[0]
    moves = list(gold(case))
    ends = [index for index, move in enumerate(moves) if "submit" in move]
    empty = next(at for at, (a, b) in enumerate(pairwise([-1, *ends])) if b - a == 1)
    invented: Move = {"tool_name": "print", "args": {"file": 1}}
    at = ends[empty]
    assert play(case, [*moves[:at], invented, *moves[at:]]).success is True


def test_calls_become_python_source_with_literal_arguments() -> None:
    assert (
        python_source("cd", {"folder": "a'b\\\n", "deep": [None, True, 1.5]})
        == 'cd(folder="a\'b\\\\\\n", deep=[None, True, 1.5])'
    )
    assert (
        python_source("cd", {"class": 1})
        == python_source("cd", {"a b": 1})
        == python_source("os.system", {})
        == UNKNOWN_CALL
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_the_checker_process_has_its_own_unprivileged_user() -> None:
    process = CheckerProcess("bfcl")
    status = Path(f"/proc/{process.process_id}/status").read_text(encoding="ascii")
    process.close()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == [str(CHECKER_UID)] * 4
    assert (fields["NoNewPrivs"], int(fields["CapEff"], 16)) == ("1", 0)


def test_a_power_that_would_not_terminate_is_rejected() -> None:
    case = next(case for case in cases("multi_turn_base") if "MathAPI" in _classes(case))
    endless: Move = {"tool_name": "power", "args": {"base": 9, "exponent": 10**12}}
    assert play(case, (endless, *gold(case))).success is True


def test_results_do_not_depend_on_the_order_of_a_set() -> None:
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
    (call,) = play_in_memory(replace(case.task, initial_state=state), (edit,)).calls
    assert call.output == {"error": f"Invalid fields for update: {', '.join(fields)}"}


def test_an_unknown_category_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="must be one of multi_turn_base"):
        Bfcl().load("multi_turn")


def _classes(case: Case) -> list[str]:
    classes = case.task.initial_state["involved_classes"]
    assert isinstance(classes, list)
    return [str(name) for name in classes]


def test_more_than_twenty_model_messages_with_calls_in_a_turn_fail() -> None:
    case = next(
        case for case in cases("multi_turn_long_context") if case.task.task_id.endswith("_38")
    )
    evidence = play_in_memory(case.task, gold(case))
    assert max(Counter(call.turn for call in evidence.calls).values()) == 34
    assert score_episode(case.task, case.gold, evidence).success is True, "one message per turn"
    for calls_per_message, success in ((2, True), (1, False)):
        calls = tuple(
            replace(call, model_calls_before=1 + index // calls_per_message)
            for index, call in enumerate(evidence.calls)
        )
        score = score_episode(case.task, case.gold, replace(evidence, calls=calls))
        assert (score.success, score.checks["steps_per_turn"]) == (success, success)


def test_a_call_that_a_fault_holds_back_to_the_end_is_missing() -> None:
    case = cases("multi_turn_base")[0]
    calls = sum("tool_name" in move for move in gold(case))
    assert play(with_fault(case, "out_of_order", calls), gold(case)).success is False
