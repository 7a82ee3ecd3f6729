"""Section with the attempts that ended without a score."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts
from fumehood.report.findings import Findings
from fumehood.report.runs import Subject
from fumehood.report.sections.section import Section
from fumehood.report.statistics.infra import Attempts, attempts_of, infra_differences
from fumehood.report.statistics.metrics import Unit
from fumehood.report.text_table import TextTable

NOTE = (
    "Infra: attempts that ended as infra, repeated attempts and those of resumed runs included. "
    "In the last column each of them counts as a failure."
)


def attempts_section(findings: Findings) -> Section:
    """Return the attempts without a score, per agent."""
    subjects = [agent.subject for agent in findings.subjects]
    return Section(
        label="Attempts",
        title="Attempts without a score",
        tables=[attempts_table(subjects)],
        data=[attempts_data(subjects)],
        is_open=True,
    )


def attempts_table(subjects: Sequence[Subject]) -> TextTable:
    """Return one row per agent; the note names agents whose infra rates differ."""
    rows = [
        (
            *(subject.label, f"{own.total:,}", f"{own.infra:,}", f"{own.ungraded:,}"),
            wording.amount(own.successes / own.graded if own.graded else None, Unit.SHARE),
            wording.amount(own.success_with_infra_failed, Unit.SHARE),
        )
        for subject, own in ((subject, _attempts(subject)) for subject in subjects)
    ]
    header = ("Agent", "Attempts", "Infra", "Ungraded", "Success", "Infra as failure")
    note = " ".join([NOTE, *(f"{line}." for line in notices(subjects))])
    return TextTable("Attempts without a score", header, rows, note=note)


def notices(subjects: Sequence[Subject]) -> list[str]:
    """Return one sentence for each agent whose infra rate differs from that of its run."""
    runs = {id(subject.run): subject.run for subject in subjects}
    return [
        str(difference)
        for key in runs
        for difference in infra_differences(
            {subject.label: _attempts(subject) for subject in subjects if id(subject.run) == key}
        )
    ]


def attempts_data(subjects: Sequence[Subject]) -> DataTable:
    """Return the attempts of each agent."""
    columns = (
        *texts("run", "agent"),
        *integers("attempts", "graded", "successes", "ungraded", "infra_attempts"),
        *numbers("success_rate_with_infra_failed"),
    )
    rows = [
        (
            *(subject.run.label, subject.agent, own.total, own.graded, own.successes),
            *(own.ungraded, own.infra, own.success_with_infra_failed),
        )
        for subject, own in ((subject, _attempts(subject)) for subject in subjects)
    ]
    return DataTable("attempts", columns, rows)


def _attempts(subject: Subject) -> Attempts:
    return attempts_of(result.row for result in subject.results)
