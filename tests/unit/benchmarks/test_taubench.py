"""Tests of τ-bench on a generated checkout with two seats and a separate process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.taubench.world import OPENING
from fumehood.core.errors import InputError
from fumehood.core.score import Score
from fumehood.core.task import Case
from tests.parts.folders import short_folder
from tests.parts.taubench import write_checkout
from tests.unit.benchmarks.scoring import play, score_episode, with_fault

CANCEL: Move = {"tool_name": "cancel", "args": {"order_id": "o1"}}
TRANSFER: Move = {"tool_name": "transfer_to_human_agents", "args": {}}


def user(text: str) -> Move:
    return {"seat": "user", "submit": text}


def agent(text: str) -> Move:
    return {"submit": text}


@pytest.fixture(scope="module")
def cases() -> Iterator[Sequence[Case]]:
    with short_folder() as place:
        yield load_suite(f"taubench:retail:{write_checkout(Path(place) / 'checkout')}").cases


def test_the_oracle_solves_a_task_and_partial_solutions_do_not(cases: Sequence[Case]) -> None:
    for case in cases:
        assert play(case, case.gold.oracle or ()).success is True
    stop = user("###STOP###")
    without_message = [user("Please."), CANCEL, agent("Done."), stop]
    without_call = [user("Please."), agent("o1 it is."), stop]
    other: Move = {"tool_name": "cancel", "args": {"order_id": "o2"}}
    extra_call = [user("Please."), CANCEL, other, agent("o1 it is."), stop]
    for moves in (without_message, without_call, extra_call):
        assert play(cases[0], moves).checks == {"ended": True, "reward": False}


def test_the_no_op_solves_a_task_without_gold_changes(cases: Sequence[Case]) -> None:
    assert [play(case, [agent("")]).success for case in cases] == [False, True]


def test_a_conversation_that_reaches_its_turn_limit_fails(cases: Sequence[Case]) -> None:
    moves = [move for _ in range(40) for move in (user("And?"), agent("Wait."))]
    score = play(cases[1], moves)
    assert score.checks == {"ended": False}
    assert score.success is False


def test_a_transfer_ends_the_conversation(cases: Sequence[Case]) -> None:
    moves = [
        user("Please."),
        CANCEL,
        TRANSFER,
        CANCEL,
        agent("o1 is transferred."),
        user("Oh."),
    ]
    evidence = play_in_memory(cases[0].task, moves)
    assert evidence.final_state["ended"] == "tool"
    assert evidence.calls[-1].failure is not None
    assert [message.text for message in evidence.submissions if message.seat == "user"] == [
        "Please."
    ]
    score: Score = score_episode(cases[0].task, cases[0].gold, evidence)
    assert score.checks["reward"] is False, "messages after the end do not count"
    named = [user("Please."), agent("o1 it is."), user("Go on."), CANCEL, TRANSFER]
    assert play(cases[0], named).success is True


def test_tools_keep_state_within_an_episode_only(cases: Sequence[Case]) -> None:
    look: Move = {"tool_name": "look", "args": {"order_id": "o1"}}
    wrong: Move = {"tool_name": "look", "args": {"number": 1}}
    for _ in range(2):
        evidence = play_in_memory(cases[0].task, [user("Please."), look, CANCEL, look, wrong])
        results = [call.output and call.output["result"] for call in evidence.calls]
        assert results[:3] == ['{"status": "open"}', "cancelled", '{"status": "cancelled"}']
        assert "unexpected keyword" in str(results[3])


def test_a_call_that_ends_its_process_has_no_effect_and_the_episode_is_still_scored(
    cases: Sequence[Case],
) -> None:
    compute: Move = {"tool_name": "compute", "args": {}}
    end = (agent("o1 it is."), user("###STOP###"))
    evidence = play_in_memory(cases[0].task, [user("Please."), compute, CANCEL, *end])
    assert [call.failure and call.failure.code for call in evidence.calls] == [
        "no_answer",
        None,
    ]
    assert play(cases[0], [user("Please."), compute, CANCEL, *end]).success is True
    assert play(cases[0], [user("Please."), compute, *end]).success is False, "not ungraded"


def test_each_seat_receives_its_own_instruction(cases: Sequence[Case]) -> None:
    agent_seat, user_seat = cases[0].task.seats
    assert "Cancel nothing twice." in agent_seat.instruction
    assert "You want o1 cancelled." not in agent_seat.instruction
    assert "You want o1 cancelled." in user_seat.instruction
    assert user_seat.tools == ()
    assert OPENING.startswith("Hi!")


def test_a_call_that_a_fault_holds_back_or_repeats_counts_as_it_is_executed(
    cases: Sequence[Case],
) -> None:
    moves = [user("Please."), CANCEL, agent("o1 it is."), user("###STOP###")]
    assert play(cases[0], moves).success is True
    assert play(with_fault(cases[0], "out_of_order", 1), moves).checks["reward"] is False
    evidence = play_in_memory(with_fault(cases[0], "duplicate_delivery", 1).task, moves)
    assert [each.call.tool_name for each in evidence.received_calls()] == ["cancel", "cancel"]


@pytest.mark.parametrize(
    "argument", ["", "shop:x", "retail", "retail:/nowhere", "airline:train:/nowhere"]
)
def test_an_invalid_argument_or_checkout_is_rejected(argument: str) -> None:
    with pytest.raises(InputError):
        load_suite(f"taubench:{argument}")


def test_a_checkout_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    (tmp_path / "tau_bench").mkdir()
    with pytest.raises(InputError, match=f"{tmp_path} must be a checkout that all users can read"):
        load_suite(f"taubench:retail:{tmp_path}")
