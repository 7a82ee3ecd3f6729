"""Failure labels of real episodes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core import outcome
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.evidence import SeenProblem
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.outcome import Infra, InfraKind, TimedOut
from fumehood.core.score import UNGRADED, Score
from fumehood.core.task import Case, Suite, Task
from fumehood.report.results import Result, join_results
from fumehood.report.statistics.failures import LEVELS, TITLES, Attribution, Label, attribute
from fumehood.report.traces import ReadTrace, read_traces
from fumehood_agent import Refused
from fumehood_agent.in_process import InProcessSession
from fumehood_agent.seat import ModelProblem
from tests.parts.memory_runs import play_run

GOOD = {"id": "a1", "patch": {"tier": "gold"}}


def _case(*, solvable: bool | None = True, faults: tuple[str, ...] = (), retries: int = 9) -> Case:
    task = Task(
        task_id="gold",
        world="crud",
        harness_mode="native",
        initial_state={"accounts": {"a1": {"id": "a1", "tier": "basic"}}},
        fault_plan=tuple(FaultRule(at, family) for at, family in enumerate(faults)),
        seed=1,
        seats=(SeatSpec(instruction="", budget=Budget(steps=9, calls=9, retries=retries)),),
        tags={},
    )
    criteria = ({"op": "equals", "path": "accounts.a1.tier", "value": "gold"},)
    return Case(task, Gold("native", criteria, solvable))


def _play(
    folder: Path, player: Callable[[InProcessSession], object], case: Case
) -> tuple[Result, ReadTrace]:
    suite = Suite("one", (case,))
    run = play_run(folder / "run", suite, {"player": player})
    return next(iter(read_traces(run, join_results(run.rows(), suite))))


def _why(folder: Path, player: Callable[[InProcessSession], object], case: Case) -> Attribution:
    result, trace = _play(folder, player, case)
    found = attribute(result, trace.evidence)
    assert found is not None
    return found


def test_a_success_has_no_attribution(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("update_account", GOOD)
        seat.submit("done")

    result, trace = _play(tmp_path, player, _case())
    assert result.success
    assert attribute(result, trace.evidence) is None


def test_finishing_with_failed_checks_is_reasoning(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("get_account", {"id": "a1"})
        seat.submit("done")

    why = _why(tmp_path, player, _case())
    assert why.primary is Label.REASONING
    assert why.secondary == ()
    assert "check_0:equals" in why.signs[0].description


def test_without_proof_of_solvability_the_failure_is_unattributed(tmp_path: Path) -> None:
    why = _why(tmp_path, lambda seat: seat.submit("done"), _case(solvable=None))
    assert why.primary is Label.UNATTRIBUTED


def test_giving_up_a_solvable_task_is_reasoning(tmp_path: Path) -> None:
    # The row contains only the beginning of this reason.
    why = _why(tmp_path, lambda seat: seat.give_up("too hard " * 1000), _case())
    assert list(why.by_seat) == ["agent"]
    assert why.primary is Label.REASONING


def test_finishing_an_unsolvable_task_is_reasoning(tmp_path: Path) -> None:
    why = _why(tmp_path, lambda seat: seat.submit("done"), _case(solvable=False))
    assert why.primary is Label.REASONING


def test_an_invalid_call_that_is_never_corrected_is_tool_invocation(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("update_acount", GOOD)
        seat.submit("done")

    why = _why(tmp_path, player, _case())
    assert why.primary is Label.TOOL_INVOCATION
    assert why.secondary == (Label.REASONING,)


def test_a_corrected_invalid_call_is_only_secondary(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("update_account", {"id": "a1"})
        seat.call("update_account", {"id": "a1", "patch": {"tier": "silver"}})
        seat.submit("done")

    why = _why(tmp_path, player, _case())
    assert why.primary is Label.REASONING
    assert why.secondary == (Label.TOOL_INVOCATION,)


def test_a_call_that_a_fault_made_invalid_is_not_attributed_to_the_agent(tmp_path: Path) -> None:
    case = _case(faults=("schema_drift",))
    case = replace(
        case,
        task=replace(
            case.task,
            harness_mode="toolmisuse",
            fault_plan=(FaultRule(0, "schema_drift", {}, "soft", {"rename_args": {"id": "key"}}),),
        ),
    )

    def player(seat: InProcessSession) -> None:
        seat.call("update_account", GOOD)
        seat.submit("done")

    why = _why(tmp_path, player, case)
    assert Label.TOOL_INVOCATION not in {why.primary, *why.secondary}


def test_invalid_calls_that_use_up_the_budget_come_before_it(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        while not seat.call("get_acount", {}).ended:
            pass

    why = _why(tmp_path, player, _case(retries=4))
    assert why.primary is Label.TOOL_INVOCATION
    assert why.secondary == (Label.BUDGET, Label.REASONING)
    assert "unknown_tool" in why.signs[0].description


@pytest.mark.parametrize(
    ("invalid_calls", "label"), [(2, Label.BUDGET), (3, Label.TOOL_INVOCATION)]
)
def test_three_invalid_calls_at_the_end_come_before_the_budget(
    tmp_path: Path, invalid_calls: int, label: Label
) -> None:
    def player(seat: InProcessSession) -> None:
        for _ in range(9 - invalid_calls):
            seat.call("get_account", {"id": "a1"})
        while not seat.call("get_acount", {}).ended:
            pass

    assert _why(tmp_path, player, _case()).primary is label


def test_valid_calls_that_use_up_the_budget_do_not_come_before_it(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("get_acount", {})
        while not seat.call("get_account", {"id": "a1"}).ended:
            pass

    why = _why(tmp_path, player, _case())
    assert why.primary is Label.BUDGET
    assert why.secondary == (Label.TOOL_INVOCATION, Label.REASONING)


def test_a_crash_comes_before_an_invalid_call(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("get_acount", {})
        raise RuntimeError("boom")

    why = _why(tmp_path, player, _case())
    assert (why.primary, why.secondary) == (Label.CRASH, (Label.TOOL_INVOCATION,))


def test_an_agent_whose_messages_were_all_refused_failed_by_parsing(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        with suppress(Refused):
            seat.call("get_account", {"id": "x" * 2_000_000})
        raise RuntimeError("boom")

    why = _why(tmp_path, player, _case())
    assert (why.primary, why.secondary) == (Label.PARSING, (Label.CRASH,))


def test_a_task_that_its_oracle_solves_is_solvable(tmp_path: Path) -> None:
    result, trace = _play(tmp_path, lambda seat: seat.submit("done"), _case(solvable=None))
    why = attribute(result, trace.evidence, lambda task_id: True)
    assert why is not None
    assert why.primary is Label.REASONING
    assert why.by_seat == {"agent": Label.REASONING}


def test_a_violated_safety_check_comes_first(tmp_path: Path) -> None:
    result, trace = _play(tmp_path, lambda seat: seat.give_up("done"), _case())
    score = Score(False, {"check_0:equals": False, "safety:check_1:equals": False})
    why = attribute(replace(result, row=replace(result.row, score=score)), trace.evidence)
    assert why is not None
    assert (why.primary, why.secondary) == (Label.UNSAFE, (Label.REASONING,))
    assert "safety:check_1" in why.signs[0].description


@pytest.mark.parametrize(
    ("problem", "label"),
    [
        (ModelProblem.ARGUMENTS_UNPARSEABLE, Label.PARSING),
        (ModelProblem.CONTEXT_OVERFLOW, Label.CONTEXT_OVERFLOW),
        (ModelProblem.REPLY_TRUNCATED, Label.PARSING),
        (ModelProblem.REPLY_UNPARSEABLE, Label.PARSING),
        (ModelProblem.REQUEST_REFUSED, Label.CRASH),
        (ModelProblem.TURN_LIMIT, Label.BUDGET),
    ],
)
def test_a_stop_because_of_the_model_has_the_label_of_its_problem(
    tmp_path: Path, problem: ModelProblem, label: Label
) -> None:
    why = _why(tmp_path, lambda seat: seat.stop(problem), _case())
    assert why.primary is label
    assert problem.value in why.signs[0].description or label is Label.BUDGET


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_problem_that_only_the_agent_reported_hides_no_other_cause(
    tmp_path: Path, repeats: int
) -> None:
    def player(seat: InProcessSession) -> None:
        for _ in range(repeats):
            seat.call("get_account" if repeats > 1 else "perform_magic", {"id": "a1"})
        seat.stop(ModelProblem.CONTEXT_OVERFLOW)

    result, trace = _play(tmp_path, player, _case())
    reported = attribute(result, trace.evidence)
    assert reported is not None
    assert reported.primary is (Label.REASONING if repeats > 1 else Label.TOOL_INVOCATION)
    assert Label.CONTEXT_OVERFLOW in reported.secondary
    (sign,) = (sign for sign in reported.signs if sign.only_reported)
    assert sign.description == "stopped: context_overflow; only the agent reported it"
    assert trace.evidence is not None
    seen = SeenProblem("agent", outcome.ModelProblem.CONTEXT_OVERFLOW, "gateway", repeats)
    shown = attribute(result, replace(trace.evidence, model_problems=(seen,)))
    assert shown is not None
    assert shown.primary is Label.CONTEXT_OVERFLOW
    assert not any(sign.only_reported for sign in shown.signs)


def test_a_reply_that_was_cut_once_is_only_secondary(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        seat.report(ModelProblem.REPLY_TRUNCATED)
        seat.call("get_account", {"id": "a1"})
        seat.submit("done")

    why = _why(tmp_path, player, _case())
    assert (why.primary, why.secondary) == (Label.REASONING, (Label.PARSING,))


def test_a_crash_is_labelled_as_crash(tmp_path: Path) -> None:
    def player(seat: InProcessSession) -> None:
        raise RuntimeError("boom")

    why = _why(tmp_path, player, _case())
    assert why.primary is Label.CRASH
    assert why.signs[0].description == "exit status 1"


@pytest.mark.parametrize(
    ("solvable", "label"), [(True, Label.REASONING), (None, Label.UNATTRIBUTED)]
)
def test_a_fault_without_recovery(tmp_path: Path, solvable: bool | None, label: Label) -> None:
    def player(seat: InProcessSession) -> None:
        seat.call("update_account", GOOD)
        seat.submit("done")

    why = _why(tmp_path, player, _case(solvable=solvable, faults=("timeout",)))
    assert why.primary is label
    assert any("a fault fired on" in sign.description for sign in why.signs)


def test_timeouts_and_infra_failures_need_no_trace(tmp_path: Path) -> None:
    result, _ = _play(tmp_path, lambda seat: seat.submit(), _case())
    timed_out = replace(result, row=replace(result.row, outcome=TimedOut(2000)))
    lost = replace(
        result, row=replace(result.row, outcome=Infra(InfraKind.ENGINE, "no box"), score=UNGRADED)
    )
    for changed, label in ((timed_out, Label.TIMEOUT), (lost, Label.INFRASTRUCTURE)):
        why = attribute(changed, None)
        assert why is not None
        assert why.primary is label


def test_every_label_has_a_level_and_a_title() -> None:
    assert set(LEVELS) == set(TITLES) == set(Label)
