"""Rewards of tests inside a workspace are displayed beside those of a verifier, as forgeable."""

from __future__ import annotations

from fumehood.cli.run_summary import agent_table
from fumehood.core.json_values import JsonObject
from fumehood.core.score import Score
from fumehood.report.statistics.metrics import REWARDS, metrics_of, scored_shared
from fumehood.report.statistics.pairs import compare
from fumehood.report.summary import summarize
from fumehood.scorers.verdict import (
    FORGEABLE_DIFFERENCE,
    FORGEABLE_REWARD,
    REWARD,
    SHARED,
    VERIFICATION,
    Verdict,
    verdict_from_json,
)
from tests.property.report.rows import facts, result

FORGED: JsonObject = {REWARD: 0.0, FORGEABLE_REWARD: 1.0, FORGEABLE_DIFFERENCE: 1.0}
BOTH = [
    result(facts("a"), Score(False, {}, FORGED)),
    result(facts("b"), Score(True, {}, {**FORGED, REWARD: 1.0, FORGEABLE_DIFFERENCE: 0.0})),
]
INSIDE = [result(facts("a"), Score(True, {}, {REWARD: 1.0, VERIFICATION: SHARED}))]


def test_a_verdict_keeps_the_one_of_tests_inside_the_workspace() -> None:
    inside = Verdict({"reward": 1.0}, is_shared=True)
    verdict = Verdict({"reward": 0.0}, files=2, shared=inside)
    assert verdict_from_json(verdict.to_json()) == verdict
    assert set(Verdict().to_json()) == {"rewards", "problem", "output", "files", "left_out"}


def test_both_rewards_and_their_difference_are_in_the_table_of_agents() -> None:
    table = agent_table(summarize([one.row for one in BOTH], ["one"]))
    cells = dict(zip(table.header, table.rows[0], strict=True))
    assert cells["reward"] == "50.0%"
    assert cells["shared mode (forgeable)"] == "100.0%"
    assert cells["difference"] == "+50.0 pp"
    assert "shared, forgeable" not in cells


def test_scores_of_tests_inside_the_workspace_are_counted() -> None:
    assert scored_shared([*BOTH, *INSIDE]) == 1
    table = agent_table(summarize([one.row for one in INSIDE], ["one"]))
    assert dict(zip(table.header, table.rows[0], strict=True))["shared, forgeable"] == "1"


def test_comparisons_contain_both_rewards() -> None:
    compared = compare(BOTH, BOTH).metrics
    assert [compared[metric.name].first for metric in REWARDS] == [0.5, 1.0, 0.5]
    assert {metric.name for metric in metrics_of(BOTH)} >= {metric.name for metric in REWARDS}
