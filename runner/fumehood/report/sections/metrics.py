"""Sections with the benchmark metrics: the eight metrics of each agent, and utility and safety."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fumehood.core.score import Score
from fumehood.report import wording
from fumehood.report.data_table import ALL, DataTable, Row, integers, numbers, texts
from fumehood.report.findings import Findings, GroupFindings, SubjectFindings
from fumehood.report.results import Result
from fumehood.report.runs import Subject
from fumehood.report.sections.episodes import episode_data
from fumehood.report.sections.section import Section
from fumehood.report.statistics.intervals import ends, estimates
from fumehood.report.statistics.metrics import THE_EIGHT, Metric, Unit, score_metrics
from fumehood.report.text_table import TextTable

INTERVALS = "In brackets: 95 % bootstrap intervals over tasks; Wilson intervals if all tasks agree."
RECOVERY = (
    "Recovery: share of all graded episodes in which a fault fired and the task succeeded; "
    "the column recovered of fumehood run counts only episodes in which a fault fired."
)


def metrics_section(findings: Findings) -> Section:
    """Return the eight metrics of every agent."""
    return Section(
        label="Metrics",
        title="The eight metrics",
        tables=[metric_table(findings), score_table(findings)],
        data=[episode_data(findings), metrics_data(findings)],
        is_open=True,
    )


def safety_section(findings: Findings) -> Section:
    """Return utility and safety of every agent that ran tasks with safety checks."""
    subjects = [agent.subject for agent in findings.subjects]
    return Section(
        label="Safety",
        title="Utility and safety",
        tables=[safety_table(subjects)],
        data=[safety_data(subjects)],
        is_open=True,
    )


def metric_table(findings: Findings) -> TextTable:
    """Return the eight metrics of every agent."""
    models = any(agent_findings.subject.model for agent_findings in findings.subjects)
    header = (
        *(("Agent", "Model") if models else ("Agent",)),
        *("Graded", *(metric.title for metric in THE_EIGHT)),
    )
    rows = [
        (
            agent_findings.subject.label,
            *((agent_findings.subject.model or wording.NONE,) if models else ()),
            wording.graded(agent_findings.whole.counts),
            *wording.estimates(agent_findings.whole, THE_EIGHT),
        )
        for agent_findings in findings.subjects
    ]
    return TextTable(
        "The eight metrics", header, rows, names=1 + models, note=f"{INTERVALS} {RECOVERY}"
    )


def score_table(findings: Findings) -> TextTable:
    """Return the partial and rubric scores that scorers gave."""
    results = [result for agent in findings.subjects for result in agent.subject.results]
    metrics = score_metrics(results)
    rows = [
        (
            agent.subject.label,
            *(
                wording.estimate(own, metric.unit) if own else wording.NONE
                for metric in metrics
                for own in (agent.whole.estimates.get(metric.name),)
            ),
        )
        for agent in findings.subjects
        if metrics
    ]
    header = ("Agent", *(metric.title for metric in metrics))
    return TextTable("Scores of the scorers", header, rows, note=INTERVALS)


def metrics_data(findings: Findings) -> DataTable:
    """Return every metric of each agent: over all episodes, by fault family and by domain."""
    columns = (
        *texts("agent", "grouping", "group", "metric"),
        *numbers("mean", "low", "high"),
        *integers("over", "tasks", "episodes", "graded", "ungraded", "infra", "infra_attempts"),
    )
    rows = [row for agent_findings in findings.subjects for row in _metric_rows(agent_findings)]
    return DataTable("metrics", columns, rows)


def _metric_rows(agent_findings: SubjectFindings) -> Iterator[Row]:
    groups: list[tuple[str, str, GroupFindings]] = [
        (ALL, ALL, agent_findings.whole),
        *(("fault", name, group) for name, group in agent_findings.by_fault.items()),
        *(("domain", name, group) for name, group in agent_findings.by_domain.items()),
    ]
    for grouping, name, group in groups:
        counts = group.counts
        for metric, estimate in group.estimates.items():
            yield (
                agent_findings.subject.label,
                grouping,
                name,
                metric,
                estimate.value,
                *ends(estimate.interval),
                estimate.over,
                estimate.tasks,
                counts.episodes,
                counts.graded,
                counts.ungraded,
                counts.infra,
                counts.infra + counts.repeated,
            )


def _share_with(holds: Callable[[Score], bool | None]) -> Callable[[Result], float | None]:
    def share(result: Result) -> float | None:
        score = result.row.score
        held = holds(score)
        return None if score.safety is None or held is None else float(held)

    return share


ASPECTS = (
    Metric(
        "utility",
        "Utility",
        Unit.SHARE,
        _share_with(lambda score: score.utility),
        higher_is_better=True,
    ),
    Metric(
        "safety",
        "Safety",
        Unit.SHARE,
        _share_with(lambda score: score.safety),
        higher_is_better=True,
    ),
)


def safety_table(subjects: Sequence[Subject]) -> TextTable:
    """Return one row for each agent that ran tasks with safety checks."""
    rows = []
    for subject in subjects:
        own = estimates(subject.results, ASPECTS)
        if own["safety"].over:
            cells = (wording.estimate(own[metric.name], metric.unit) for metric in ASPECTS)
            rows.append((subject.label, str(own["safety"].over), *cells))
    header = ("Agent", "Episodes", *(metric.title for metric in ASPECTS))
    note = "Over graded episodes with safety checks. Success requires both."
    return TextTable("Utility and safety", header, rows, note=note)


def safety_data(subjects: Sequence[Subject]) -> DataTable:
    """Return utility and safety of each agent that ran tasks with safety checks."""
    columns = (*texts("agent", "metric"), *numbers("mean", "low", "high"), *integers("over"))
    rows = [
        (subject.label, name, own.value, *ends(own.interval), own.over)
        for subject in subjects
        for name, own in estimates(subject.results, ASPECTS).items()
        if own.over
    ]
    return DataTable("safety", columns, rows)
