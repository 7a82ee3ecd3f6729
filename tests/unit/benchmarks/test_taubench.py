"""τ-bench on a checkout of our own making: two seats, calls made again in a process of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fumehood.benchmarks.in_memory import Move, play_in_memory
from fumehood.benchmarks.table import load_suite
from fumehood.benchmarks.taubench.world import OPENING
from fumehood.core.errors import InputError
from fumehood.core.score import Score
from fumehood.core.task import Case
from tests.parts.folders import short_folder
from tests.parts.taubench import write_checkout
from tests.unit.benchmarks.judging import judge, play

CANCEL: Move = {"tool_name": "cancel", "args": {"order_id": "o1"}}
HAND_OVER: Move = {"tool_name": "transfer_to_human_agents", "args": {}}


def user(text: str) -> Move:
    return {"seat": "user", "submit": text}


def said(text: str) -> Move:
    return {"submit": text}


@pytest.fixture(scope="module")
def cases() -> Iterator[Sequence[Case]]:
    with short_folder() as place:
        yield load_suite(f"taubench:retail:{write_checkout(Path(place) / 'checkout')}").cases


def test_gold_calls_and_words_solve_it_and_less_does_not(cases: Sequence[Case]) -> None:
    for case in cases:
        assert play(case, case.gold.oracle or ()).success is True
    stop = user("###STOP###")
    silent = [user("Please."), CANCEL, said("Done."), stop]
    idle = [user("Please."), said("o1 it is."), stop]
    other: Move = {"tool_name": "cancel", "args": {"order_id": "o2"}}
    both = [user("Please."), CANCEL, other, said("o1 it is."), stop]
    for moves in (silent, idle, both):
        assert play(cases[0], moves).checks == {"ended": True, "reward": False}


def test_doing_nothing_is_right_where_nothing_is_to_be_done(cases: Sequence[Case]) -> None:
    assert [play(case, [said("")]).success for case in cases] == [False, True]


def test_a_conversation_without_an_end_is_a_failure(cases: Sequence[Case]) -> None:
    moves = [each for _ in range(40) for each in (user("And?"), said("Wait."))]
    score = play(cases[1], moves)
    assert score.checks == {"ended": False}
    assert score.success is False


def test_handing_over_ends_it_as_it_stands(cases: Sequence[Case]) -> None:
    moves = [
        user("Please."),
        CANCEL,
        HAND_OVER,
        CANCEL,
        said("o1 goes to somebody else."),
        user("Oh."),
    ]
    evidence = play_in_memory(cases[0].task, moves)
    assert evidence.final_state["ended"] == "tool"
    assert evidence.exchanges[-1].failure is not None
    assert [one.text for one in evidence.said if one.seat == "user"] == ["Please."]
    score: Score = judge(cases[0].task, cases[0].gold, evidence)
    assert score.checks["reward"] is False, "what is said after the end is not heard"
    named = [user("Please."), said("o1 it is."), user("Go on."), CANCEL, HAND_OVER]
    assert play(cases[0], named).success is True


def test_tools_remember_within_an_episode_and_no_further(cases: Sequence[Case]) -> None:
    look: Move = {"tool_name": "look", "args": {"order_id": "o1"}}
    wrong: Move = {"tool_name": "look", "args": {"number": 1}}
    for _ in range(2):
        evidence = play_in_memory(cases[0].task, [user("Please."), look, CANCEL, look, wrong])
        shown = [each.output and each.output["result"] for each in evidence.exchanges]
        assert shown[:3] == ['{"status": "open"}', "cancelled", '{"status": "cancelled"}']
        assert "unexpected keyword" in str(shown[3])


def test_a_call_that_breaks_its_process_neither_ends_an_attempt_nor_keeps_it_from_being_judged(
    cases: Sequence[Case],
) -> None:
    compute: Move = {"tool_name": "compute", "args": {}}
    end = (said("o1 it is."), user("###STOP###"))
    evidence = play_in_memory(cases[0].task, [user("Please."), compute, CANCEL, *end])
    assert [each.failure and each.failure.code for each in evidence.exchanges] == [
        "no_answer",
        None,
    ]
    assert play(cases[0], [user("Please."), compute, CANCEL, *end]).success is True
    assert play(cases[0], [user("Please."), compute, *end]).success is False, "and not ungraded"


def test_each_seat_is_told_its_own(cases: Sequence[Case]) -> None:
    agent, other = cases[0].task.seats
    assert "Cancel nothing twice." in agent.instruction
    assert "You want o1 cancelled." not in agent.instruction
    assert "You want o1 cancelled." in other.instruction
    assert other.tools == ()
    assert OPENING.startswith("Hi!")


@pytest.mark.parametrize(
    "argument", ["", "shop:x", "retail", "retail:/nowhere", "airline:train:/nowhere"]
)
def test_what_is_no_checkout_is_refused(argument: str) -> None:
    with pytest.raises(InputError):
        load_suite(f"taubench:{argument}")


def test_a_checkout_that_does_not_work_is_named(tmp_path: Path) -> None:
    (tmp_path / "tau_bench").mkdir()
    with pytest.raises(InputError, match=f"{tmp_path} must be a checkout that everybody may read"):
        load_suite(f"taubench:retail:{tmp_path}")
