"""Section with repeated trials: pass@k and pass^k."""

from __future__ import annotations

from typing import Any

from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import (
    ARIA_LABEL,
    FIT,
    PER_CENT,
    SHARE,
    Picture,
    Spec,
    agent_colour,
    label_of,
    legend_columns,
)
from fumehood.report.sections.section import Section
from fumehood.report.statistics.intervals import ends
from fumehood.report.statistics.metrics import Unit
from fumehood.report.text_table import TextTable


def trials_section(findings: Findings) -> Section:
    """Return pass@k and pass^k."""
    repeated = any(
        rate.k > 1 for agent_findings in findings.subjects for rate in agent_findings.trials.pass_at
    )
    return Section(
        label="Trials",
        title="Repeated trials",
        tables=[trial_table(findings)],
        pictures=[repeated_trials(findings)] if repeated else (),
        data=[trial_data(findings)],
    )


def trial_table(findings: Findings) -> TextTable:
    """Return pass@k and pass^k; empty if every task had one trial."""
    ks = list(
        dict.fromkeys(
            rate.k for agent_findings in findings.subjects for rate in agent_findings.trials.pass_at
        )
    )
    header = ("Agent", "", *(f"k = {k}" for k in ks))
    rows = []
    for agent_findings in findings.subjects:
        for name, rates in (
            ("pass@k", agent_findings.trials.pass_at),
            ("pass^k", agent_findings.trials.pass_all),
        ):
            by_k = {
                rate.k: f"{rate.value:.1%} {wording.span(rate.interval, Unit.SHARE)}".strip()
                for rate in rates
            }
            rows.append(
                (agent_findings.subject.label, name, *(by_k.get(k, wording.NONE) for k in ks))
            )
    note = (
        "pass@k: at least one of k trials succeeds. pass^k: all k succeed. Over tasks with k "
        "graded trials."
    )
    return TextTable(
        "Repeated trials", header, rows if max(ks, default=1) > 1 else (), names=2, note=note
    )


def trial_data(findings: Findings) -> DataTable:
    """Return pass@k and pass^k of each agent at each k."""
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
            agent_findings.subject.label,
            at.k,
            at.tasks,
            at.value,
            *ends(at.interval),
            every.value,
            *ends(every.interval),
        )
        for agent_findings in findings.subjects
        for at, every in zip(
            agent_findings.trials.pass_at, agent_findings.trials.pass_all, strict=True
        )
    ]
    return DataTable("trials", columns, rows)


def repeated_trials(findings: Findings) -> Picture:
    """Return pass@k and pass^k by k."""
    rows = [row for agent_findings in findings.subjects for row in _rows(agent_findings)]
    ks = sorted({row["k"] for row in rows})
    caption = (
        "Solid: probability that at least one of k trials succeeds (pass@k). Dashed: probability "
        "that all k succeed (pass^k). The gap shows the randomness of the agent."
    )

    def spec(width_px: int) -> Spec:
        colour = agent_colour(findings.subjects)
        colour.setdefault("legend", legend_columns(width_px))
        return {
            "data": {"values": rows},
            "width": width_px,
            "height": 240,
            "autosize": FIT,
            "encoding": {
                "x": {
                    "field": "k",
                    "type": "quantitative",
                    "scale": {"type": "log", "base": 2, "nice": False},
                    "axis": {"values": ks, "title": "k, trials", "grid": False, "format": "d"},
                },
                "y": {
                    "field": "value",
                    "type": "quantitative",
                    "scale": SHARE,
                    "axis": {**PER_CENT, "title": None},
                },
                "color": colour,
                "strokeDash": {
                    "field": "rate",
                    "scale": {"domain": ["pass@k", "pass^k"], "range": [[1, 0], [5, 4]]},
                    "legend": None,
                },
            },
            "layer": [
                {"mark": {"type": "line", "strokeWidth": 2}},
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": ARIA_LABEL,
                },
            ],
        }

    return Picture("repeated_trials", "Repeated trials", caption, spec)


def _rows(agent_findings: SubjectFindings) -> list[dict[str, Any]]:
    agent = label_of(agent_findings)
    return [
        {
            "agent": agent,
            "rate": name,
            "k": rate.k,
            "value": rate.value,
            "label_text": (
                f"{agent}, {name} at k = {rate.k}: {rate.value:.1%} over {rate.tasks:,} tasks"
            ),
        }
        for name, rates in (
            ("pass@k", agent_findings.trials.pass_at),
            ("pass^k", agent_findings.trials.pass_all),
        )
        for rate in rates
    ]
