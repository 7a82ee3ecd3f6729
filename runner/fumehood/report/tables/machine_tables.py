"""What was found, as tables for programs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from fumehood.core.outcome import outcome_name
from fumehood.report.findings import Findings, GroupFindings, SubjectFindings, Versus
from fumehood.report.results import CLEAN, Result
from fumehood.report.statistics.failure_labels import LEVELS, Label
from fumehood.report.statistics.intervals import Interval
from fumehood.report.statistics.metrics import THE_EIGHT
from fumehood.report.statistics.pairs import Difference, Flips
from fumehood.report.statistics.resources import RESOURCES
from fumehood.report.tables.table import Cell, Column, Kind, Table, integers, numbers, texts

ALL = "all"
"""The group of everything."""

Row = tuple[Cell, ...]


def data_tables(findings: Findings) -> tuple[Table, ...]:
    """Return every table, the episodes first."""
    return (
        _episodes(findings),
        _metrics(findings),
        budgeted_table(findings),
        _trials(findings),
        _resources(findings),
        _failures(findings),
        _comparisons(findings),
        _flips(findings),
    )


def _episodes(findings: Findings) -> Table:
    columns = (
        *texts("run", "agent", "task"),
        *integers("trial"),
        *texts("domain", "faults", "outcome"),
        Column("success", Kind.TRUTH),
        *numbers(*(metric.name for metric in THE_EIGHT[1:])),
        *texts("failure", "failure_secondary"),
        *integers("wall_ms", "attempts", "refusals"),
        *texts("trace", "trace_digest"),
    )
    rows = [
        _episode(found, result) for found in findings.subjects for result in found.subject.results
    ]
    return Table("episodes", columns, rows)


def _episode(found: SubjectFindings, result: Result) -> Row:
    row, why = result.row, found.attributions.get(str(result.row.name))
    scored = result.success is not None
    return (
        found.subject.run.label,
        row.name.agent,
        row.name.task,
        row.name.trial,
        result.task.domain,
        "+".join(result.task.families) or CLEAN,
        outcome_name(row.outcome),
        result.success,
        *(metric.of(result) if scored else None for metric in THE_EIGHT[1:]),
        why.primary.value if why else None,
        "+".join(label.value for label in why.secondary) if why else None,
        row.wall_ms,
        row.attempts,
        row.refusals,
        row.trace,
        row.trace_digest,
    )


def _metrics(findings: Findings) -> Table:
    columns = (
        *texts("agent", "grouping", "group", "metric"),
        *numbers("mean", "low", "high"),
        *integers("over", "tasks", "episodes", "graded", "ungraded", "infra"),
    )
    rows = [row for found in findings.subjects for row in _metric_rows(found)]
    return Table("metrics", columns, rows)


def _metric_rows(found: SubjectFindings) -> Iterator[Row]:
    groups: list[tuple[str, str, GroupFindings]] = [
        (ALL, ALL, found.whole),
        *(("fault", name, group) for name, group in found.by_fault.items()),
        *(("domain", name, group) for name, group in found.by_domain.items()),
    ]
    for grouping, name, group in groups:
        counts = group.counts
        for metric, estimate in group.estimates.items():
            yield (
                found.subject.label,
                grouping,
                name,
                metric,
                estimate.value,
                *_ends(estimate.interval),
                estimate.over,
                estimate.tasks,
                counts.episodes,
                counts.graded,
                counts.ungraded,
                counts.infra,
            )


def budgeted_table(findings: Findings) -> Table:
    """Return S(k) for every k."""
    columns = (*texts("agent"), *integers("k"), *numbers("s"))
    rows = [
        (found.subject.label, k, share)
        for found in findings.subjects
        for k, share in enumerate(found.curve)
    ]
    return Table("budgeted_success", columns, rows)


def _trials(findings: Findings) -> Table:
    names = (
        "pass_at_k",
        "pass_at_k_low",
        "pass_at_k_high",
        "pass_all_k",
        "pass_all_k_low",
        "pass_all_k_high",
    )
    columns = (*texts("agent"), *integers("k", "tasks"), *numbers(*names))
    rows = [
        (
            found.subject.label,
            at.k,
            at.tasks,
            at.value,
            *_ends(at.interval),
            every.value,
            *_ends(every.interval),
        )
        for found in findings.subjects
        for at, every in zip(found.trials.pass_at, found.trials.pass_all, strict=True)
    ]
    return Table("trials", columns, rows)


def _resources(findings: Findings) -> Table:
    columns = (
        *texts("agent", "seat", "resource", "unit"),
        *numbers("mean", "median", "p95", "total"),
        *integers("over"),
    )
    units = {resource.name: resource.unit for resource in RESOURCES}
    rows = [
        (
            found.subject.label,
            seat,
            name,
            units[name],
            own.mean,
            own.median,
            own.p95,
            own.total,
            own.over,
        )
        for found in findings.subjects
        for (seat, name), own in found.spreads.items()
    ]
    return Table("resources", columns, rows)


def _failures(findings: Findings) -> Table:
    columns = (*texts("agent", "level", "label"), *integers("primary", "secondary"))
    counted = [
        (found.subject.label, found.primaries(), found.secondaries()) for found in findings.subjects
    ]
    rows = [
        (agent, LEVELS[label].value, label.value, first.get(label, 0), second.get(label, 0))
        for (agent, first, second), label in product(counted, Label)
    ]
    return Table("failures", columns, rows)


def _comparisons(findings: Findings) -> Table:
    columns = (
        *texts("first", "second", "grouping", "group"),
        *integers("pairs", "both", "lost", "won", "neither"),
        *numbers("first_success", "second_success", "difference", "low", "high", "p_value"),
        *texts("test"),
        *integers("unmatched", "differing", "undecided"),
    )
    return Table(
        "comparisons", columns, [row for versus in findings.versus for row in _versus_rows(versus)]
    )


def _versus_rows(versus: Versus) -> Iterator[Row]:
    found, labels = versus.comparison, (versus.first.label, versus.second.label)
    left_out = found.pairing
    tail = (
        found.p_value,
        found.test.value,
        left_out.unmatched,
        left_out.differing,
        left_out.undecided,
    )
    yield (*labels, ALL, ALL, *_fell(found.flips, found.success), *tail)
    for grouping, groups in (("fault", found.by_fault), ("domain", found.by_domain)):
        for name, (flips, difference) in groups.items():
            yield (*labels, grouping, name, *_fell(flips, difference), None, None, None, None, None)


def _fell(flips: Flips, difference: Difference) -> Row:
    return (
        difference.over,
        flips.both,
        flips.lost,
        flips.won,
        flips.neither,
        difference.first,
        difference.second,
        difference.value,
        *_ends(difference.interval),
    )


def _flips(findings: Findings) -> Table:
    columns = (
        *texts("first", "second", "task"),
        *integers("trial"),
        *texts("domain", "faults", "flip"),
    )
    rows = [
        (
            versus.first.label,
            versus.second.label,
            pair.first.task.task_id,
            pair.first.row.name.trial,
            pair.first.task.domain,
            "+".join(pair.first.task.families) or CLEAN,
            "won" if pair.change > 0 else "lost",
        )
        for versus in findings.versus
        for pair in versus.comparison.flipped
    ]
    return Table("flips", columns, rows)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)
