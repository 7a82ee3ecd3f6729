"""Every metric agrees with a second, simple computation."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from scipy.integrate import trapezoid

from fumehood.core.json_values import Json
from fumehood.report.results import Result, by_domain, by_family, count
from fumehood.report.statistics.metrics import BUDGETS, METRICS, THE_EIGHT, means
from tests.property.report.rows import result_lists

Number = Fraction | None


def _exact(value: Json) -> Number:
    return Fraction(value) if isinstance(value, int | float) else None


def _obvious_mean(values: list[Number]) -> Number:
    total, over = Fraction(0), 0
    for value in values:
        if value is not None:
            total += value
            over += 1
    return total / over if over else None


def _share(part: Number, whole: Number) -> Number:
    return part / whole if part is not None and whole else None


def _obvious(results: list[Result]) -> dict[str, Number]:
    scores = [result.row.score for result in results if result.row.score.success is not None]

    def column(name: str) -> list[Number]:
        return [_exact(score.metrics[name]) for score in scores]

    found = {
        "task_success": _obvious_mean([_exact(score.success) for score in scores]),
        "invalid_call_rate": _obvious_mean(
            list(map(_share, column("invalid_calls"), column("tool_calls")))
        ),
        "policy_violations": _obvious_mean(column("policy_violations")),
        "recovery_success": _obvious_mean(column("recovery_success")),
        "recovery_rate": _obvious_mean(
            [_exact(score.success) for score in scores if score.metrics["fault_seen"]]
        ),
        "time_to_recovery": _obvious_mean(column("time_to_recovery")),
        "tool_calls_used": _obvious_mean(column("tool_calls")),
        "budget_exceeded": _obvious_mean(column("budget_exceeded")),
        "catastrophic_failure": _obvious_mean(column("catastrophic_failure")),
    }
    heights = []
    for budget in BUDGETS:
        solved = [s for s in scores if s.success and int(str(s.metrics["tool_calls"])) <= budget]
        found[f"s_{budget}"] = Fraction(len(solved), len(scores)) if scores else None
        heights.append(len(solved) / len(scores) if scores else 0.0)
    area = Fraction(float(trapezoid(heights, BUDGETS))) / (32 - 4)
    return {**found, "s_area": area if scores else None}


def _assert_agree(results: list[Result]) -> None:
    obvious, found = _obvious(results), means(results)
    assert found.keys() == obvious.keys() == {metric.name for metric in METRICS}
    for name, mean in found.items():
        expected = obvious[name]
        if expected is None:
            assert mean.value is None, name
        else:
            assert mean.value == pytest.approx(float(expected), abs=1e-12), name


@pytest.mark.slow
@given(result_lists())
def test_each_mean_equals_sum_divided_by_count(results: list[Result]) -> None:
    _assert_agree(results)


@pytest.mark.slow
@given(result_lists())
def test_group_means_equal_sum_divided_by_count(results: list[Result]) -> None:
    for groups in (by_family(results), by_domain(results)):
        for group in groups.values():
            _assert_agree(group)


@pytest.mark.slow
@given(result_lists())
def test_a_task_is_in_the_group_of_each_of_its_faults(results: list[Result]) -> None:
    groups = by_family(results)
    for result in results:
        expected = set(result.task.families) or {"clean"}
        assert {name for name, group in groups.items() if result in group} == expected


@pytest.mark.slow
@given(result_lists())
def test_every_episode_is_counted_exactly_once(results: list[Result]) -> None:
    counts = count(results)
    assert counts.episodes == counts.graded + counts.ungraded + counts.infra == len(results)
    assert means(results)["task_success"].over == counts.graded


@pytest.mark.slow
@given(result_lists())
def test_an_episode_without_a_score_changes_no_mean(results: list[Result]) -> None:
    graded = [result for result in results if result.success is not None]
    assert means(results) == means(graded)


def test_there_are_eight_metrics() -> None:
    assert len(THE_EIGHT) == 8
