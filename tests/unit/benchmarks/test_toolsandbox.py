"""Tests of ToolSandbox on a generated checkout with two seats and a separate process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.toolsandbox.names import PARTS
from fumehood.core.errors import InputError
from fumehood.core.task import Case
from tests.parts.folders import short_folder
from tests.parts.toolsandbox import write_checkout
from tests.unit.benchmarks.scoring import play, with_fault

OFF: Move = {"tool_name": "set_wifi_status", "args": {"on": False}}
END: Move = {"seat": "user", "tool_name": "end_conversation", "args": {}}
SAID: Move = {"submit": "Wifi is off"}


@pytest.fixture(scope="module")
def cases() -> Iterator[Sequence[Case]]:
    with short_folder() as place:
        yield load_suite(f"toolsandbox:{write_checkout(Path(place) / 'checkout')}").cases


@pytest.fixture
def wifi(cases: Sequence[Case]) -> Case:
    return next(case for case in cases if case.task.task_id == "wifi_off")


def _task(cases: Sequence[Case], task_id: str) -> Case:
    return next(case for case in cases if case.task.task_id == task_id)


@pytest.mark.slow
def test_the_derived_solutions_solve_every_task_of_every_part(cases: Sequence[Case]) -> None:
    assert {case.task.tags["part"] for case in cases} == {*PARTS}
    for case in cases:
        score = play(case, case.gold.oracle or ())
        assert score.success is True, case.task.task_id
        assert score.metrics["similarity"] == 1.0


def test_the_no_op_solves_only_the_tasks_without_milestones(cases: Sequence[Case]) -> None:
    solved = {case.task.tags["scenario"] for case in cases if play(case, []).success}
    assert solved == {"impossible"}


def test_an_incomplete_solution_has_the_similarity_of_the_original(wifi: Case) -> None:
    score = play(wifi, [OFF, {"submit": "Wifi"}, END])
    assert score.checks["milestone_1"] is False
    assert score.metrics["similarity"] == pytest.approx((1 + 1 / 3) / 2)
    assert play(wifi, [SAID, END]).checks["milestone_0"] is False


def test_a_minefield_makes_the_similarity_zero(cases: Sequence[Case]) -> None:
    score = play(_task(cases, "impossible"), [OFF, END])
    assert score.checks["no_minefield"] is False
    assert (score.success, score.metrics["similarity"]) == (False, 0)


def test_a_call_of_an_unknown_tool_is_a_similarity_of_zero_as_in_the_original(wifi: Case) -> None:
    invented: Move = {"tool_name": "switch_wifi", "args": {}}
    score = play(wifi, [invented, OFF, SAID, END])
    assert score.checks["no_exception"] is False
    assert score.metrics["similarity"] == 0


def test_a_failed_call_is_shown_and_the_conversation_goes_on(wifi: Case) -> None:
    wrong: Move = {"tool_name": "set_wifi_status", "args": {"on": "no"}}
    evidence = play_in_memory(wifi.task, [wrong, OFF, SAID, END])
    first, second, *_ = evidence.calls
    assert first.failure is not None
    assert first.failure.message == "TypeError: on must be bool"
    assert second.output == {"result": "None"}
    assert play(wifi, [wrong, OFF, SAID, END]).success is True


def test_the_user_ends_the_conversation(wifi: Case) -> None:
    evidence = play_in_memory(wifi.task, [{"submit": "Why?"}, END, OFF])
    assert evidence.final_state["ended"] == "user"
    assert [call.tool_name for call in evidence.calls] == ["end_conversation"]


def test_a_conversation_ends_at_its_limit_of_messages(wifi: Case) -> None:
    moves: list[Move] = [{"submit": "And?"}, *[OFF] * 5]
    evidence = play_in_memory(wifi.task, [{"seat": "user", "submit": "Go on."}, *moves])
    assert [call.failure and call.failure.code for call in evidence.calls] == [
        *[None] * 3,
        *["over"] * 2,
    ]
    assert evidence.final_state["ended"] == "limit"
    assert play_in_memory(wifi.task, []).final_state["ended"] == "limit"


def test_a_part_renames_tools_for_the_agent_and_not_for_the_user(cases: Sequence[Case]) -> None:
    case = _task(cases, "wifi_off_3_distraction_tools_tool_name_scrambled")
    agent, user = case.task.seats
    assert set(agent.tools or ()) == {"tool_15", "tool_8"}
    assert user.tools == ("end_conversation",)


def test_time_and_identifiers_do_not_depend_on_the_machine(cases: Sequence[Case]) -> None:
    case = _task(cases, "time_all_tools")
    moves: list[Move] = [
        {"tool_name": "add_note", "args": {"text": "x"}},
        {"tool_name": "get_current_timestamp", "args": {}},
    ]
    results = [[call.output for call in play_in_memory(case.task, moves).calls] for _ in range(2)]
    assert results[0] == results[1]
    assert results[0][1] == {"result": "1717581602.0"}


def test_the_scripted_user_states_the_task_without_its_secrets(cases: Sequence[Case]) -> None:
    script = _task(cases, "time").task.scripts["user"]
    assert script[0] == {"submit": "Ask for the time. Say please."}
    assert _task(cases, "wifi_off").task.scripts["user"][0]["tool_name"] == "end_conversation"


def test_each_seat_receives_its_own_instruction(wifi: Case) -> None:
    agent, user = wifi.task.seats
    assert agent.instruction.startswith("Ask if a request is ambiguous.")
    assert "Play a user." not in agent.instruction
    assert "complete: Turn off wifi." in user.instruction
    assert user.instruction.endswith("The task: find a message.\nYou: Find it.")


def test_each_part_is_a_suite() -> None:
    with short_folder() as place:
        suite = load_suite(f"toolsandbox:all_tools:{write_checkout(Path(place) / 'checkout')}")
    assert suite.name == "toolsandbox:all_tools"
    assert {case.task.tags["part"] for case in suite.cases} == {"all_tools"}


@pytest.mark.parametrize("argument", ["", "base", "base:/nowhere", "some_tools:/nowhere"])
def test_an_argument_without_a_checkout_is_refused(argument: str) -> None:
    with pytest.raises(InputError, match=r"use toolsandbox\[:PART\]:CHECKOUT"):
        load_suite(f"toolsandbox:{argument}")


def test_a_checkout_without_packages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tool_sandbox").mkdir()
    with pytest.raises(InputError, match="not a checkout with packages"):
        load_suite(f"toolsandbox:{tmp_path}")


def test_an_incomplete_checkout_is_refused_with_the_missing_part() -> None:
    with short_folder() as place:
        checkout = write_checkout(Path(place) / "checkout")
        (checkout / "tool_sandbox" / "roles" / "base_role.py").unlink()
        with pytest.raises(InputError, match=r"No module named 'tool_sandbox\.roles") as refusal:
            load_suite(f"toolsandbox:{checkout}")
        assert "\n" not in str(refusal.value)


def test_a_call_that_a_fault_holds_back_to_the_end_reaches_no_milestone(wifi: Case) -> None:
    assert play(wifi, [OFF, SAID, END]).success is True
    held = with_fault(wifi, "out_of_order", 1, after_calls=9)
    assert play(held, [OFF, SAID, END]).checks["milestone_0"] is False
