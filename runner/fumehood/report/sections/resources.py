"""Section with the resources that episodes used."""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.sections.section import Section
from fumehood.report.statistics.resources import RESOURCES, WHOLE_EPISODE, Resource, Spread
from fumehood.report.text_table import TextTable


def resources_section(findings: Findings) -> Section:
    """Return the resources that episodes used."""
    return Section(
        label="Resources",
        title="Resources",
        tables=[resource_table(findings)],
        data=[resource_data(findings)],
        is_open=True,
    )


NOT_ZERO = frozenset("123456789")
"""Digits of which an amount other than zero contains at least one."""


def resource_table(findings: Findings) -> TextTable:
    """Return the distribution of each resource."""
    header = ("Resource", "Agent", "Mean", "Median", "p95", "Total")
    rows = [
        row
        for resource in RESOURCES
        for agent in findings.subjects
        for row in _resource_rows(agent, resource)
    ]
    used = {row[0] for row in rows if any(NOT_ZERO & set(cell) for cell in row[2:])}
    rows = [row for row in rows if row[0] in used]
    note = (
        "Per episode. Wall time includes the start of the box; time in calls is the time in the "
        "service."
    )
    return TextTable("Resources", header, rows, names=2, note=note)


def _resource_rows(agent: SubjectFindings, resource: Resource) -> Iterator[tuple[str, ...]]:
    seats = dict.fromkeys(seat for seat, _ in agent.spreads if seat != WHOLE_EPISODE)
    for seat in (*seats, WHOLE_EPISODE):
        spread = agent.spreads.get((seat, resource.name))
        if spread is not None:
            title = f"{resource.title} ({seat})" if len(seats) > 1 and seat else resource.title
            yield (title, agent.subject.label, *_spread(spread, resource.unit))


def _spread(spread: Spread, unit: str) -> list[str]:
    amounts = (spread.mean, spread.median, spread.p95, spread.total)
    return [wording.quantity(amount, unit) for amount in amounts]


def resource_data(findings: Findings) -> DataTable:
    """Return the resources that each agent's seats used."""
    columns = (
        *texts("agent", "seat", "resource", "unit"),
        *numbers("mean", "median", "p95", "total"),
        *integers("over"),
    )
    units = {resource.name: resource.unit for resource in RESOURCES}
    rows = [
        (
            *(agent.subject.label, seat, name, units[name]),
            *(spread.mean, spread.median, spread.p95, spread.total, spread.over),
        )
        for agent in findings.subjects
        for (seat, name), spread in agent.spreads.items()
    ]
    return DataTable("resources", columns, rows)
