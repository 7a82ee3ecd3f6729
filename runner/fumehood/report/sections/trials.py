"""Section with repeated trials: pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fumehood.report import pictures as vega
from fumehood.report import wording
from fumehood.report.data_table import DataTable, integers, numbers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.pictures import Picture, Spec, label_of
from fumehood.report.sections.section import Section
from fumehood.report.statistics.intervals import ends
from fumehood.report.statistics.metrics import Unit
from fumehood.report.statistics.trials import TrialRate
from fumehood.report.text_table import TextTable


def trials_section(findings: Findings) -> Section:
    """Return pass@k and pass^k."""
    repeated = any(rate.k > 1 for agent in findings.subjects for rate in agent.trials.pass_at)
    return Section(
        label="Trials",
        title="Repeated trials",
        tables=[trial_table(findings)],
        pictures=[repeated_trials(findings)] if repeated else (),
        data=[trial_data(findings)],
    )


def trial_table(findings: Findings) -> TextTable:
    """Return pass@k and pass^k; empty if every task had one trial."""
    ks = list(dict.fromkeys(rate.k for agent in findings.subjects for rate in agent.trials.pass_at))
    header = ("Agent", "", *(f"k = {k}" for k in ks))
    rows = [
        (agent.subject.label, name, *_cells(rates, ks))
        for agent in findings.subjects
        for name, rates in (("pass@k", agent.trials.pass_at), ("pass^k", agent.trials.pass_all))
        if max(ks, default=1) > 1
    ]
    note = (
        "pass@k: at least one of k trials succeeds. pass^k: all k succeed. Over tasks with k "
        "graded trials."
    )
    return TextTable("Repeated trials", header, rows, names=2, note=note)


def _cells(rates: Sequence[TrialRate], ks: Sequence[int]) -> list[str]:
    by_k = {
        rate.k: f"{rate.value:.1%} {wording.span(rate.interval, Unit.SHARE)}".strip()
        for rate in rates
    }
    return [by_k.get(k, wording.NONE) for k in ks]


def trial_data(findings: Findings) -> DataTable:
    """Return pass@k and pass^k of each agent at each k."""
    columns = (
        *texts("agent"),
        *integers("k", "tasks"),
        *numbers("pass_at_k", "pass_at_k_low", "pass_at_k_high"),
        *numbers("pass_all_k", "pass_all_k_low", "pass_all_k_high"),
    )
    rows = [
        (
            *(agent.subject.label, at.k, at.tasks),
            *(at.value, *ends(at.interval)),
            *(every.value, *ends(every.interval)),
        )
        for agent in findings.subjects
        for at, every in zip(agent.trials.pass_at, agent.trials.pass_all, strict=True)
    ]
    return DataTable("trials", columns, rows)


def repeated_trials(findings: Findings) -> Picture:
    """Return pass@k and pass^k by k."""
    rows = [row for agent in findings.subjects for row in _rows(agent)]
    ks = sorted({row["k"] for row in rows})
    caption = (
        "Solid: probability that at least one of k trials succeeds (pass@k). Dashed: probability "
        "that all k succeed (pass^k). The gap shows the randomness of the agent."
    )

    def spec(width_px: int) -> Spec:
        axis = {"values": ks, "title": "k, trials", "grid": False, "format": "d"}
        dashes = {"domain": ["pass@k", "pass^k"], "range": [[1, 0], [5, 4]]}
        return vega.frame(
            width_px,
            rows,
            height=240,
            encoding={
                "x": vega.field("k", scale={"type": "log", "base": 2, "nice": False}, axis=axis),
                "y": vega.share("value"),
                "color": vega.agent_colour(findings.subjects, width_px),
                "strokeDash": {"field": "rate", "scale": dashes, "legend": None},
            },
            layer=[{"mark": {"type": "line", "strokeWidth": 2}}, vega.dots(60)],
        )

    return Picture("repeated_trials", "Repeated trials", caption, spec)


def _rows(agent: SubjectFindings) -> list[dict[str, Any]]:
    label = label_of(agent)
    return [
        {
            **{"agent": label, "rate": name, "k": rate.k, "value": rate.value},
            "label_text": (
                f"{label}, {name} at k = {rate.k}: {rate.value:.1%} over {rate.tasks:,} tasks"
            ),
        }
        for name, rates in (("pass@k", agent.trials.pass_at), ("pass^k", agent.trials.pass_all))
        for rate in rates
    ]
