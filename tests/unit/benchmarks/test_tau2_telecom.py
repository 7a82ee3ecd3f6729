"""τ²-bench's telecom without a user: its gold solves every task, by the package's checks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.benchmarks.tau2.package import calling, data_folder
from fumehood.benchmarks.tau2.scorer import ASSERTIONS
from fumehood.benchmarks.tau2.world_telecom import Tau2Telecom
from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence
from fumehood.core.json_values import JsonObject, copy_object
from fumehood.core.task import Case
from fumehood.core.tools import Failure, ToolCall, Value
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_data import benchmark_data
from tests.parts.installed import installed

installed("inspect_evals")

NOTHING: tuple[Move, ...] = ({"submit": ""},)


@cache
def _cases() -> tuple[Case, ...]:
    return load_suite("tau2:telecom").cases


def _success(case: Case, evidence: Evidence) -> bool | None:
    return score_evidence(case.task, case.gold, evidence).success


def _gold(case: Case) -> tuple[Move, ...]:
    assert case.gold.oracle is not None
    return case.gold.oracle


@pytest.mark.slow
def test_the_oracle_solves_every_task_and_the_no_op_none() -> None:
    assert len(_cases()) == 114
    assert (
        sum(_success(case, play_in_memory(case.task, _gold(case))) is True for case in _cases())
        == 114
    )
    assert sum(_success(case, play_in_memory(case.task, NOTHING)) is True for case in _cases()) == 0


def test_half_of_the_gold_calls_does_not_solve_a_task() -> None:
    for case in _cases()[::6]:
        calls = _gold(case)[:-1]
        assert _success(case, play_in_memory(case.task, calls[: len(calls) // 2])) is False


def test_giving_up_after_the_last_call_does_not_solve_a_task() -> None:
    case = _cases()[0]
    assert (
        _success(case, play_in_memory(case.task, (*_gold(case)[:-1], {"give_up": "tired"})))
        is False
    )


def test_the_package_and_the_scorer_agree_about_every_final_state() -> None:
    for case in _cases()[::3]:
        for moves in (_gold(case), _gold(case)[1:], NOTHING):
            state = play_in_memory(case.task, moves).final_state
            for criterion in case.gold.criteria:
                if criterion["op"] == "assertion":
                    name, arguments = str(criterion["func_name"]), criterion["arguments"]
                    assert isinstance(arguments, dict)
                    assert ASSERTIONS[name](state, arguments) == _package_assertion(
                        state, criterion["env_type"], name, arguments
                    )


def _package_assertion(state: JsonObject, side: object, name: str, arguments: JsonObject) -> object:
    """Return the result of the package's own assertion about a state."""
    world = Tau2Telecom(copy_object(state))
    with calling(world._agent, world._user):
        return getattr(world._user if side == "user" else world._agent, name)(**arguments)


def test_every_assertion_of_the_package_is_supported() -> None:
    world = Tau2Telecom({})
    asserting = {
        name
        for side in (world._agent, world._user)
        for name in dir(type(side))
        if name.startswith("assert_")
    }
    of_mock = {"assert_notification_status", "assert_number_of_tasks", "assert_task_status"}
    assert set(ASSERTIONS) - of_mock == asserting


def test_two_worlds_do_not_share_state() -> None:
    state = _cases()[0].task.initial_state
    one, other, again = (Tau2Telecom(copy_object(state)) for _ in range(3))
    calls = [
        ToolCall("toggle_data", {}),
        ToolCall("get_customer_by_phone", {"phone_number": "555-123-2002"}),
    ]
    results = [one.call(call) for call in calls]
    assert one.state != state
    assert other.state == state
    assert [again.call(call) for call in calls] == results
    assert again.state == one.state


def test_a_folder_replaces_the_packages_data() -> None:
    folder = benchmark_data("tau2/telecom")
    cases = load_suite(f"tau2:telecom:{folder}").cases
    assert len(cases) == 20
    assert all(_success(case, play_in_memory(case.task, _gold(case))) is True for case in cases)


@pytest.mark.parametrize(
    "argument", ["", "hotel", "telecom:nowhere", "airline:nowhere", "mock:nowhere"]
)
def test_a_missing_domain_or_folder_is_rejected_in_one_line(argument: str) -> None:
    with pytest.raises(InputError) as error:
        load_suite(f"tau2:{argument}")
    assert "\n" not in str(error.value)


def test_a_task_without_a_ticket_needs_a_user(tmp_path: Path) -> None:
    for name in ("db.toml", "user_db.toml", "main_policy_solo.txt", "tech_support_manual.txt"):
        (tmp_path / name).write_bytes((data_folder("telecom") / name).read_bytes())
    (tmp_path / "tasks.json").write_text(
        '[{"id": "a", "evaluation_criteria": {"reward_basis": ["ACTION"]}}]'
    )
    with pytest.raises(InputError, match=r"tasks\.json: a: ticket"):
        load_suite(f"tau2:telecom:{tmp_path}")


def test_an_unknown_part_of_a_reward_basis_is_rejected_with_its_field(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(
        '[{"id": "a", "evaluation_criteria": {"reward_basis": ["MOOD"]}}]'
    )
    (tmp_path / "policy.md").write_text("Be kind.")
    (tmp_path / "db.json").write_text('{"tasks": {}, "users": {}}')
    with pytest.raises(InputError, match=r"tasks\.json: .*reward_basis"):
        load_suite(f"tau2:mock:{tmp_path}")


def _replies(case: Case, *calls: ToolCall) -> list[str]:
    world = Tau2Telecom(copy_object(case.task.initial_state))
    results = [world.call(call) for call in calls]
    assert all(isinstance(result, Value) for result in results), results
    return [str(result.output["result"]) for result in results if isinstance(result, Value)]


def test_numbers_in_results_are_texts_as_in_the_original() -> None:
    line: JsonObject = {"customer_id": "C1001", "line_id": "L1002"}
    bills = ToolCall("get_bills_for_customer", {"customer_id": "C1001"})
    usage, listed = _replies(_cases()[0], ToolCall("get_data_usage", line), bills)
    assert all(isinstance(value, str) for value in json.loads(usage).values()), usage
    assert isinstance(json.loads(listed)[0]["total_due"], float), "objects keep their numbers"


def test_arguments_are_not_checked_as_in_the_original() -> None:
    world = Tau2Telecom(copy_object(_cases()[0].task.initial_state))
    result = world.call(ToolCall("set_network_mode_preference", {"mode": 7}))
    assert isinstance(result, Failure), "the method raises an exception after the change"
    user: Any = world.state["user"]
    assert user["device"]["network_mode_preference"] == 7
    assert isinstance(world.call(ToolCall("toggle_data", {"extra": 1})), Failure)


def test_a_slow_vpn_is_still_slow_after_it_was_connected_again() -> None:
    case = next(case for case in _cases() if "bad_vpn" in case.task.task_id)
    calls = [ToolCall(name, {}) for name in ("disconnect_vpn", "connect_vpn", "check_vpn_status")]
    assert "poor" in _replies(case, *calls)[-1]
    other = next(case for case in _cases() if "bad_vpn" not in case.task.task_id)
    assert "excellent" in _replies(other, *calls[1:])[-1], "tasks do not affect each other"
