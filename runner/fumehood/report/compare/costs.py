"""Costs of agents on the same tasks: metrics, and the table of differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fumehood.report import wording
from fumehood.report.results import Result
from fumehood.report.runs import Subject
from fumehood.report.statistics.metrics import Metric, Unit
from fumehood.report.statistics.pairs import Difference
from fumehood.report.statistics.resources import model_totals, spent, spreads
from fumehood.report.text_table import TextTable
from fumehood.report.traces import read_traces

COSTS = {
    "calls": "Tool calls",
    "model_calls": "Model requests",
    "model_tokens": "Tokens",
    "model_microusd": "Money",
}
"""Resource → title. Amounts are per episode, over all its seats."""

UNITS = {"model_microusd": "µ$"}


def costs_of(subjects: Iterable[Subject]) -> dict[str, dict[str, float]]:
    """Return what each agent spent on models in all its episodes, by its label.

    Raises:
        InputError: a trace cannot be read.
    """
    costs = {}
    for subject in subjects:
        results = subject.results if subject.run.config.get("models") else ()
        traces = read_traces(subject.run.folder, results)
        entries = (entry for result, trace in traces for entry in spent(result, trace))
        costs[subject.label] = model_totals(spreads(entries))
    return costs


def cost_metrics(subjects: Iterable[Subject]) -> list[Metric]:
    """Return a metric for each resource in `COSTS`.

    Raises:
        InputError: a trace cannot be read.
    """
    amounts = dict[int, dict[str, float]]()
    for subject in subjects:
        amounts |= _amounts(subject)
    return [_metric(name, amounts) for name in COSTS]


def _amounts(subject: Subject) -> dict[int, dict[str, float]]:
    """Return the costs of each result by object identity, because names may repeat."""
    amounts: dict[int, dict[str, float]] = {}
    for result, trace in read_traces(subject.run.folder, subject.results):
        if trace.evidence is None:
            continue
        entries = [entry.amounts for entry in spent(result, trace)]
        amounts[id(result)] = {name: sum(own.get(name, 0.0) for own in entries) for name in COSTS}
    return amounts


def _metric(name: str, amounts: Mapping[int, Mapping[str, float]]) -> Metric:
    def of(result: Result) -> float | None:
        own = amounts.get(id(result))
        return own[name] if own else None

    return Metric(name, COSTS[name], Unit.COUNT, of)


def cost_change_table(compared: Sequence[tuple[str, Mapping[str, Difference]]]) -> TextTable:
    """Return cost differences on the same tasks; a resource that none used has no column.

    Args:
        compared: label of each comparison and its differences, by resource.
    """
    used = [
        name
        for name in COSTS
        if any(changes[name].first or changes[name].second for _, changes in compared)
    ]
    header = ("Compared", *(COSTS[name] for name in used))
    rows = [
        (label, *(_change(changes[name], name) for name in used)) for label, changes in compared
    ]
    note = "Second minus first per episode, paired by task; in brackets: 95 % intervals over tasks."
    return TextTable("Cost differences", header, rows, note=note)


def amount(value: float | None, name: str) -> str:
    """Return an amount of a resource as text."""
    return wording.NONE if value is None else wording.quantity(value, UNITS.get(name, ""))


def _change(change: Difference, name: str) -> str:
    if name not in UNITS:
        return wording.change(change, Unit.COUNT)
    if change.value is None:
        return wording.NONE
    ends = change.interval
    parts = [f"{'+' if change.value > 0 else ''}{amount(change.value, name)}"]
    if ends:
        parts.append(f"[{amount(ends.low, name)}, {amount(ends.high, name)}]")
    return " ".join(parts)
