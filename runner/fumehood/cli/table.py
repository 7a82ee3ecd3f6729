"""The table that a run ends with."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from fumehood.benchmarks.baselines import Baseline
from fumehood.report.summary import AgentSummary


def agent_table(summaries: Sequence[AgentSummary]) -> Table:
    """Return one line an agent; utility and safety where a task has checks of safety."""
    apart = any(one.safety_rate is not None for one in summaries)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("agent")
    aspects = ("utility", "safety") if apart else ()
    troubles = ("recovered", "of faulted", "calls", "invalid", "denied", "infra")
    for column in ("success", "of", *aspects, *troubles):
        table.add_column(column, justify="right")
    table.add_column("how episodes ended")
    for one in summaries:
        table.add_row(
            one.agent,
            percent(one.success_rate),
            str(one.graded),
            *((percent(one.utility_rate), percent(one.safety_rate)) if apart else ()),
            percent(one.recovery_rate),
            str(one.faulted),
            decimal(one.tool_calls),
            decimal(one.invalid_calls),
            decimal(one.denied_calls),
            str(one.infra),
            ", ".join(f"{name} {count}" for name, count in one.outcomes.items()),
        )
    return table


def told(baseline: Baseline) -> str:
    """Return what a baseline solves, in words."""
    ungraded = f", {baseline.ungraded} without a verdict" if baseline.ungraded else ""
    return f"{percent(baseline.success_rate)} ({baseline.solved} of {baseline.graded}{ungraded})"


def percent(share: float | None) -> str:
    """Return a share for people; a dash where there is none."""
    return "–" if share is None else f"{share:.1%}"


def decimal(value: float | None) -> str:
    """Return a mean for people; a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"
