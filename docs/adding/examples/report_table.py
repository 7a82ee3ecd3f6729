"""Report section ``endings``: how the episodes of each agent ended."""

from collections import Counter

from fumehood.core.outcome import outcome_name
from fumehood.report.data_table import DataTable, integers, texts
from fumehood.report.findings import Findings
from fumehood.report.sections.section import Section
from fumehood.report.text_table import TextTable


def endings_section(findings: Findings) -> Section:
    """Return how the episodes of each agent ended."""
    rows = [
        (found.subject.label, outcome, number)
        for found in findings.subjects
        for outcome, number in sorted(
            Counter(outcome_name(result.row.outcome) for result in found.subject.results).items()
        )
    ]
    header = ("Agent", "Outcome", "Episodes")
    text_rows = [(agent, outcome, f"{number:,}") for agent, outcome, number in rows]
    columns = (*texts("agent", "outcome"), *integers("episodes"))
    return Section(
        label="Endings",
        title="How episodes end",
        tables=[TextTable("How episodes end", header, text_rows, names=2)],
        data=[DataTable("endings", columns, rows)],
    )
