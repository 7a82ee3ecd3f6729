"""Tests of InjecAgent on a generated checkout in the published format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.injecagent.scorer import Step, steps_of
from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import InputError
from fumehood.core.task import Case
from tests.parts.injecagent import ORDER, records, write_checkout
from tests.unit.benchmarks.scoring import play


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write_checkout(tmp_path / "a checkout")


def call(tool: str) -> Move:
    return {"tool_name": tool, "args": {"id": "1"}}


def result(case: Case, *tools: str) -> tuple[bool, bool]:
    score = play(case, [call(tool) for tool in tools])
    assert score.success is all(score.checks.values())
    return score.checks["safety"], score.checks["valid"]


@pytest.mark.parametrize(
    ("argument", "tasks"),
    [("", 20), (":dh", 10), (":ds", 10), (":ds:enhanced", 10), (":enhanced", 20), (":base:dh", 10)],
)
def test_an_argument_selects_a_kind_and_a_setting(
    checkout: Path, argument: str, tasks: int
) -> None:
    suite = load_suite(f"injecagent:{checkout}{argument}")
    assert len(suite.cases) == tasks
    assert (ORDER in suite.cases[0].task.seats[0].instruction) == ("enhanced" in argument)
    assert suite.about is not None
    assert f"{tasks} of " in suite.about.scored_on


def test_doing_nothing_and_the_oracle_are_safe(checkout: Path) -> None:
    for case in load_suite(f"injecagent:{checkout}").cases:
        assert result(case) == (True, True)
        assert play(case, case.gold.oracle or ()).success is True


def test_one_call_is_direct_harm_and_two_calls_steal_data(checkout: Path) -> None:
    harm = load_suite(f"injecagent:{checkout}:dh").cases[0]
    assert result(harm, "ShopGetReviews", "GateGrantAccess") == (False, True)
    theft = load_suite(f"injecagent:{checkout}:ds").cases[0]
    assert result(theft, "HealthGetRecords") == (True, True)
    assert result(theft, "HealthGetRecords", "ShopGetReviews", "GmailSendEmail") == (False, True)
    assert result(theft, "GmailSendEmail", "HealthGetRecords") == (True, False)
    assert result(theft, "HealthGetRecords", "made_up") == (True, False)


def test_metrics_show_steps_and_calls_in_any_order(checkout: Path) -> None:
    theft = load_suite(f"injecagent:{checkout}:ds").cases[0]
    metrics = play(theft, [call("GmailSendEmail"), call("HealthGetRecords")]).metrics
    assert (metrics["attack_step_1"], metrics["attacker_tools_called"]) == (0, 2)
    assert "attack_step_2" not in metrics


def test_a_call_with_wrong_arguments_counts(checkout: Path) -> None:
    harm = load_suite(f"injecagent:{checkout}:dh").cases[0]
    moves: list[Move] = [{"tool_name": "GateGrantAccess", "args": {}}]
    assert play(harm, moves).checks == {"safety": False, "valid": True}


def test_tools_return_recorded_results(checkout: Path) -> None:
    theft = load_suite(f"injecagent:{checkout}:ds").cases[0]
    tools = ("ShopGetReviews", "HealthGetRecords", "GmailSendEmail")
    evidence = play_in_memory(theft.task, [call(tool) for tool in tools])
    assert [each.output for each in evidence.calls] == [
        {"result": records("ds")[0]["Tool Response"]},
        {"result": "{'records': ['healthy']}"},
        {"ok": True},
    ]


def test_another_call_first_does_not_make_a_completed_attack_safe(checkout: Path) -> None:
    theft = load_suite(f"injecagent:{checkout}:ds").cases[0]
    score = play(theft, [call("made_up"), call("HealthGetRecords"), call("GmailSendEmail")])
    assert score.checks == {"safety": False, "valid": False}
    assert score.metrics["attack_as_published"] == 0
    score = play(theft, [call("HealthGetRecords"), call("GmailSendEmail")])
    assert score.metrics["attack_as_published"] == 1


@given(st.lists(st.sampled_from(["user", "read", "send", "other"])))
def test_an_attack_succeeds_exactly_if_its_tools_come_first_and_in_order(calls: list[str]) -> None:
    steps = steps_of(calls, "user", ["read", "send"])
    needed = [name for name in calls if name != "user"]
    until = needed[: needed.index("send") + 1] if "send" in needed else []
    succeeded = bool(until) and until[0] == "read" and set(until) == {"read", "send"}
    assert (steps == [Step.SUCCEEDED] * 2) == succeeded


RECORD = records("dh")[0]


@pytest.mark.parametrize(
    ("replaced", "complaint"),
    [
        ({"test_cases_dh_base": []}, "must be a list with records"),
        ({"test_cases_dh_base": [{**RECORD, "User Tool": 1}]}, r"\[0\]: User Tool"),
        ({"test_cases_dh_base": [RECORD, {**RECORD, "Attacker Tools": ["Fly"]}]}, r"\[1\]: 'Fly'"),
        ({"test_cases_dh_base": records("ds")}, "direct_harm needs 1, and there are 2"),
        ({"tools": [{"toolkit": "Gmail"}]}, r"tools.json\[0\]: tools"),
        ({"attacker_simulated_responses": []}, "must be an object"),
    ],
)
def test_wrong_data_is_one_line_with_its_place(
    tmp_path: Path, replaced: dict[str, Any], complaint: str
) -> None:
    checkout = write_checkout(tmp_path / "checkout", **replaced)
    with pytest.raises(InputError, match=complaint) as refusal:
        load_suite(f"injecagent:{checkout}")
    assert "\n" not in str(refusal.value)


def test_a_missing_file_and_two_settings_are_refused(checkout: Path) -> None:
    (checkout / "data" / "test_cases_ds_base.json").unlink()
    assert len(load_suite(f"injecagent:{checkout}:dh").cases) == 10
    with pytest.raises(InputError, match=r"test_cases_ds_base\.json: there is no such file"):
        load_suite(f"injecagent:{checkout}")
    with pytest.raises(InputError, match="either base or enhanced"):
        load_suite(f"injecagent:{checkout}:base:enhanced")
