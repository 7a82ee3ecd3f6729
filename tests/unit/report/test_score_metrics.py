"""Partial and rubric scores of scorers are metrics like the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.report.sections.registry import build_sections
from fumehood.report.statistics.metrics import METRICS, Unit, metrics_of, score_metrics
from fumehood.report.statistics.pairs import compare
from fumehood.report.summary import breakdown, summarize
from fumehood.scorers.cited_answer import CitedAnswer
from tests.parts.tasks import crud_task
from tests.property.report.rows import facts, result
from tests.unit.report.runs import findings_of, played

RATED = [
    result(facts("a"), Score(False, {}, {"tool_calls": 1, "rating": 4, "task_completion": 0.8})),
    result(facts("b"), Score(True, {}, {"tool_calls": 1, "rating": 2, "winner": "wolf"})),
    result(facts("c"), Score(True, {}, {"tool_calls": 1, "causes_found": 0.5})),
]


def test_numbers_of_a_scorer_are_metrics_and_text_is_not() -> None:
    metrics = {metric.name: metric for metric in score_metrics(RATED)}
    assert {name: metric.unit for name, metric in metrics.items()} == {
        "causes_found": Unit.SHARE,
        "rating": Unit.COUNT,
        "task_completion": Unit.SHARE,
    }
    assert [one.name for one in metrics_of(RATED)] == [one.name for one in METRICS] + list(metrics)
    assert metrics_of(()) == METRICS


def test_sizes_and_counts_of_a_search_are_no_scores() -> None:
    call = AnsweredCall("agent", "search", {}, {}, {"results": [{"id": "farm"}]}, None, (), "")
    evidence = Evidence((call,), (), {"agent": Finished("nine weeks [farm]")}, {}, ())
    gold = Gold("cited_answer", ({"op": "relevant", "documents": {"farm": 1}},))
    score = CitedAnswer().score(crud_task(world="search", initial_state={}), gold, evidence)
    assert {"answer_bytes", "pages_opened", "searches"} <= score.metrics.keys()
    assert score_metrics([result(facts("a"), score)]) == ()


def test_they_are_in_json_and_in_comparisons() -> None:
    means = breakdown(RATED)["metrics"]
    assert isinstance(means, dict)
    assert (means["rating"], means["causes_found"]) == (3.0, 0.5)
    # Without a completed share, an episode counts as complete if it succeeded.
    assert means["task_completion"] == pytest.approx((0.8 + 1 + 1) / 3)
    assert compare(RATED, RATED).metrics["rating"].over == 2


@pytest.mark.parametrize(
    "large",
    [10**400, -(10**400), 1.7e308, float("inf"), float("nan")],
    ids=["integer", "negative", "float", "infinite", "nan"],
)
def test_a_number_whose_sums_are_not_finite_is_unknown(large: float) -> None:
    metrics: JsonObject = {"tool_calls": large, "price": large, "task_completion": large}
    results = [result(facts(name), Score(True, {}, metrics)) for name in ("d", "e")]
    assert results[0].number("price") is None
    assert [metric.name for metric in score_metrics(results)] == []
    means = breakdown([*RATED, *results])["metrics"]
    assert isinstance(means, dict)
    assert (means["rating"], means["causes_found"]) == (3.0, 0.5)
    assert compare([*RATED, *results], [*RATED, *results]).metrics["rating"].over == 2
    (summary,) = summarize([one.row for one in results], [RATED[0].row.name.agent])
    assert (summary.task_completion, summary.tool_calls) == (None, None)


def test_an_unknown_completed_share_is_not_that_of_a_success() -> None:
    unknown = result(facts("d"), Score(True, {}, {"tool_calls": 1, "task_completion": None}))
    means = breakdown([RATED[0], unknown])["metrics"]
    assert isinstance(means, dict)
    assert means["task_completion"] == 0.8
    (summary,) = summarize([RATED[0].row, unknown.row], [RATED[0].row.name.agent])
    assert summary.task_completion == 0.8


@pytest.mark.slow
def test_with_many_agents_a_report_has_tables_and_no_pictures(tmp_path: Path) -> None:
    agents = ("noop", "heuristic", "policy_aware", "schema_repair")
    runs = [played(tmp_path / str(number), *agents, tasks=1) for number in range(4)]
    few, many = findings_of(*runs[:3]), findings_of(*runs)
    assert any(section.pictures for section in build_sections(few).values())
    sections = build_sections(many)
    assert not any(section.pictures for section in sections.values())
    assert len(sections["metrics"].tables[0].rows) == 16
