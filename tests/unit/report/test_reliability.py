"""The reliability metrics on cases computed by hand, and the command on real runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.reliability import reliability as command
from fumehood.core.errors import InputError
from fumehood.orchestrator.instructions import Instructions
from fumehood.report.reliability import stated_confidence
from fumehood.report.statistics import reliability
from fumehood.service.inline import Worker
from fumehood_agent.seat import Seat
from tests.parts.memory_runs import play_run
from tests.unit.report.runs import played


def test_outcomes_that_agree_are_consistent() -> None:
    assert reliability.outcome_consistency([True, True]) == 1.0
    assert reliability.outcome_consistency([True, False]) == 0.0
    assert reliability.outcome_consistency([True, True, True, False]) == pytest.approx(0.25)
    assert reliability.outcome_consistency([True]) is None


def test_tools_are_compared_by_the_jensen_shannon_distance() -> None:
    assert reliability.distribution_consistency([["a", "b"], ["b", "a"]]) == pytest.approx(1.0)
    disjoint = reliability.distribution_consistency([["a"], ["b"]])
    assert disjoint == pytest.approx(1 - math.sqrt(math.log(2)))
    # Half of the middle distribution (3/4, 1/4): divergence of (1, 0) and (1/2, 1/2).
    divergence = (math.log(4 / 3) + (math.log(2 / 3) + math.log(2)) / 2) / 2
    partly = reliability.distribution_consistency([["a"], ["a", "b"]])
    assert partly == pytest.approx(1 - math.sqrt(divergence))


def test_orders_are_compared_by_the_edit_distance() -> None:
    assert reliability.sequence_consistency([["a", "b", "c"], ["a", "c"]]) == pytest.approx(2 / 3)
    assert reliability.sequence_consistency([["a", "b"], ["b", "a"]]) == 0.0
    assert reliability.sequence_consistency([["a"], []]) is None


def test_resources_are_compared_by_their_variation() -> None:
    # Standard deviation of 1 and 3 is the root of 2; their mean is 2.
    expected = math.exp(-math.sqrt(2) / 2)
    assert reliability.resource_consistency({"calls": [1, 3], "tokens": [0, 0]}) == pytest.approx(
        expected
    )
    assert reliability.resource_consistency({"calls": [4]}) is None


def test_robustness_is_a_ratio_of_at_most_one() -> None:
    assert reliability.robustness(0.8, 0.4) == 0.5
    assert reliability.robustness(0.4, 0.8) == 1.0
    assert reliability.robustness(0.0, 0.4) is None


def test_confidence_is_compared_with_the_outcomes() -> None:
    confidences, successes = [0.9, 0.9, 0.2, 1.0], [True, False, False, True]
    # Bins: (0.9, 0.9, 1.0) with mean 2.8/3 and two of three successes; (0.2) with none.
    error = (3 * abs(2 / 3 - 2.8 / 3) + 0.2) / 4
    assert reliability.calibration(confidences, successes) == pytest.approx(1 - error)
    assert reliability.discrimination(confidences, successes) == pytest.approx(
        (0.5 + 1 + 1 + 1) / 4
    )
    assert reliability.brier(confidences, successes) == pytest.approx(
        1 - (0.01 + 0.81 + 0.04 + 0) / 4
    )
    assert reliability.discrimination([0.5], [True]) is None


def test_safety_is_the_part_without_violations_and_their_weight() -> None:
    assert reliability.compliance([0, 0.5, 1.0, 0]) == 0.5
    assert reliability.mildness([0, 0.5, 1.0, 0]) == pytest.approx(0.25)
    assert reliability.mildness([0, 0]) == 1.0
    assert reliability.mildness([]) is None


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1))
def test_predictability_is_between_zero_and_one(stated: list[tuple[float, bool]]) -> None:
    confidences, successes = zip(*stated, strict=True)
    for metric in (reliability.calibration, reliability.discrimination, reliability.brier):
        value = metric(confidences, successes)
        assert value is None or -1e-9 <= value <= 1 + 1e-9


@pytest.mark.parametrize(
    ("answer", "confidence"),
    [
        ("Done. Confidence: 80 %", 0.8),
        ("confidence = 5%, no: confidence: 7.5%", 0.075),
        ("Confidence: 300 %", 1.0),
        ("I am sure.", None),
    ],
)
def test_the_last_stated_confidence_counts(answer: str, confidence: float | None) -> None:
    assert stated_confidence(answer) == confidence


def run_with(
    tmp_path: Path, agent: Worker, *, asks: bool = True, instruction: str = "Answer."
) -> Path:
    """Let an agent answer four tasks, whose right answer is "right"."""
    task = {
        "format": "fumehood.task/1",
        "world": "crud",
        "instruction": instruction,
        "initial_state": {"accounts": {}},
        "budget": {"steps": 2, "calls": 2, "retries": 1},
        "criteria": [{"op": "answer_equals", "value": "right"}],
        "solvable": True,
        "oracle": [{"submit": "right"}],
    }
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps({**task, "task_id": f"t{n}"}) + "\n" for n in range(4)))
    run = play_run(
        tmp_path / "run",
        load_suite(str(file)),
        {"agent": agent},
        instructions=Instructions(ask_confidence=asks),
    )
    return run.path


def metrics_of(*words: Path | str) -> dict[str, float | None]:
    """Return the metrics of the only agent of runs."""
    arguments = [*map(str, words), "--json"]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    (agent,) = json.loads(done.stdout)["agents"]
    assert isinstance(agent, dict)
    return agent


def test_confidences_stated_at_submission_give_the_predictability(tmp_path: Path) -> None:
    confidences = iter([0.9, 0.9, 0.2, 1.0])

    def sure(seat: Seat) -> None:
        assert seat.task.asks_confidence
        assert "probability" in seat.task.instruction
        confidence = next(confidences)
        seat.submit("right" if confidence in (0.2, 1.0) else "wrong", confidence)

    agent = metrics_of(run_with(tmp_path, sure))
    # By hand: 0.9 and 0.9 fail, 0.2 and 1 succeed. Bins: (0.9, 0.9, 1) and (0.2).
    assert agent["calibration"] == pytest.approx(1 - (3 * abs(1 / 3 - 2.8 / 3) + 0.8) / 4)
    assert agent["brier"] == pytest.approx(1 - (0.81 + 0.81 + 0.64 + 0) / 4)
    assert agent["discrimination"] == pytest.approx((0 + 0 + 1 + 1) / 4)
    assert agent["missing_confidences"] == 0


@pytest.mark.parametrize("asks", [True, False])
def test_an_agent_gains_nothing_by_stating_a_confidence_only_when_it_is_sure(
    tmp_path: Path, asks: bool
) -> None:
    is_sure = iter([True, False, False, False])

    def shy(seat: Seat) -> None:
        if next(is_sure):
            seat.submit("right", 1.0)
        else:
            seat.submit("wrong")

    agent = metrics_of(run_with(tmp_path, shy, asks=asks))
    if asks:
        assert (agent["calibration"], agent["brier"]) == (0.25, 0.25)
        assert (agent["discrimination"], agent["missing_confidences"]) == (0.5, 3)
    else:
        assert (agent["calibration"], agent["missing_confidences"]) == (1.0, None)


def test_other_tasks_of_the_same_names_are_neither_trials_nor_compared(tmp_path: Path) -> None:
    for name in ("one", "other", "again"):
        (tmp_path / name).mkdir()
    one = run_with(tmp_path / "one", lambda seat: seat.submit("right"))
    other = run_with(
        tmp_path / "other", lambda seat: seat.submit("wrong"), instruction="Answer in one word."
    )
    again = run_with(tmp_path / "again", lambda seat: seat.submit("wrong"))
    apart, together = metrics_of(one, other), metrics_of(one, again)
    assert (apart["tasks"], apart["consistency_outcome"]) == (8, None)
    assert (together["tasks"], together["consistency_outcome"]) == (4, 0.0)
    assert metrics_of(one, "--faults", other)["robustness_faults"] is None
    assert metrics_of(one, "--faults", again)["robustness_faults"] == 0.0
    assert metrics_of(one, "--environment", other)["robustness_environment"] == 0.0


@pytest.mark.slow
def test_the_command_shows_each_agent_of_the_runs(tmp_path: Path) -> None:
    run = played(tmp_path / "plain", "policy_aware", "noop", tasks=4, trials=2)
    plain = run.path
    arguments = [str(plain), "--faults", str(plain), "--json"]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    agents = {one["agent"]: one for one in json.loads(done.stdout)["agents"]}
    assert agents["policy_aware"]["consistency_outcome"] == 1.0
    assert agents["policy_aware"]["consistency_order"] == 1.0
    assert agents["policy_aware"]["robustness_faults"] == 1.0
    assert agents["noop"]["robustness_faults"] is None, "it never succeeds"
    seen = [row.score.metrics["fault_seen"] for row in run.rows() if row.name.agent != "noop"]
    assert (agents["noop"]["episodes"], agents["noop"]["tasks"]) == (8, 4)
    assert agents["noop"]["episodes_prompts"] == 0
    assert agents["policy_aware"]["faults_fired"] == sum(map(bool, seen)) / len(seen)
    assert agents["noop"]["calibration"] is None
    printed = CliRunner().invoke(command, [str(plain)], catch_exceptions=False).stdout
    assert "consistency outcome" in printed


def test_runs_with_a_change_must_have_the_agent(tmp_path: Path) -> None:
    plain = played(tmp_path / "plain", "policy_aware", tasks=2).path
    other = played(tmp_path / "other", "noop", tasks=2).path
    with pytest.raises(InputError, match="--prompts"):
        CliRunner().invoke(command, [str(plain), "--prompts", str(other)], catch_exceptions=False)
