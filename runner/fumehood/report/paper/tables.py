"""Table I and Table II: our mean with its interval, the published one, and the difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fumehood.report import wording
from fumehood.report.findings import Findings, GroupFindings
from fumehood.report.paper.published import AREA, TABLE_1, TABLE_2
from fumehood.report.statistics.intervals import Estimate
from fumehood.report.statistics.metrics import METRICS, Metric
from fumehood.report.tables.reading import ReadingTable
from fumehood.report.tables.table import Table, integers, numbers, texts

_METRICS: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
OF_TABLE_1 = ("task_success", "policy_violations", "recovery_success", "tool_calls_used", "s_area")
OF_TABLE_2 = ("task_success", "recovery_success")


@dataclass(frozen=True, slots=True)
class Line:
    """One mean of ours and what the paper has in its place."""

    agent: str
    group: str
    metric: Metric
    ours: Estimate
    published: float | None

    @property
    def difference(self) -> float | None:
        """Ours minus the published."""
        ours, published = self.ours.value, self.published
        return None if ours is None or published is None else ours - published


def table_1(findings: Findings) -> list[Line]:
    """Return the paper's first table, line by line: every agent on all tasks, and the area under S(k)."""
    return [
        line for found in findings.subjects for line in _overall(found.subject.agent, found.whole)
    ]


def table_2(findings: Findings) -> list[Line]:
    """Return the paper's second table, line by line: every agent by planned fault, by membership."""
    return [
        line
        for found in findings.subjects
        for fault, group in found.by_fault.items()
        for line in _of_fault(found.subject.agent, fault, group)
    ]


def as_data(name: str, lines: Sequence[Line]) -> Table:
    """Return lines as a table for programs."""
    columns = (
        *texts("agent", "group", "metric"),
        *numbers("ours", "low", "high", "published", "difference"),
        *integers("episodes", "tasks"),
    )
    rows = []
    for line in lines:
        ends = line.ours.interval
        low_high = (ends.low, ends.high) if ends else (None, None)
        numbers_of_line = (line.ours.value, *low_high, line.published, line.difference)
        rows.append(
            (
                line.agent,
                line.group,
                line.metric.name,
                *numbers_of_line,
                line.ours.over,
                line.ours.tasks,
            )
        )
    return Table(name, columns, rows)


def as_reading(title: str, lines: Sequence[Line]) -> ReadingTable:
    """Return lines as a table for people."""
    header = ("Agent", "Tasks", "Metric", "Ours", "Published", "Difference")
    rows = [
        (
            line.agent,
            line.group,
            line.metric.title,
            _ours(line.ours),
            _decimal(line.published),
            wording.NONE if line.difference is None else f"{line.difference:+.4f}",
        )
        for line in lines
    ]
    note = "In brackets: 95 % bootstrap intervals over tasks. A dash: the paper states nothing."
    return ReadingTable(title, header, rows, names=3, note=note)


def _overall(agent: str, group: GroupFindings) -> Iterator[Line]:
    published = {**TABLE_1.get(agent, {}), **({"s_area": AREA[agent]} if agent in AREA else {})}
    for name in OF_TABLE_1:
        yield Line(agent, "all", _METRICS[name], group.estimates[name], published.get(name))


def _of_fault(agent: str, fault: str, group: GroupFindings) -> Iterator[Line]:
    published = TABLE_2.get(agent, {}).get(fault, {})
    for name in OF_TABLE_2:
        yield Line(agent, fault, _METRICS[name], group.estimates[name], published.get(name))


def _ours(found: Estimate) -> str:
    ends = found.interval
    return (
        f"{_decimal(found.value)} [{ends.low:.3f}, {ends.high:.3f}]"
        if ends
        else _decimal(found.value)
    )


def _decimal(value: float | None) -> str:
    """Return a number as the paper writes them, shares too."""
    return wording.NONE if value is None else f"{value:.4f}"
