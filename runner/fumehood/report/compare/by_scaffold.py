"""Compares scaffolds: the same tasks and model, another scaffold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.report import wording
from fumehood.report.findings import Versus
from fumehood.report.results import Counts, Result, count
from fumehood.report.runs import Run, Subject, subjects_of
from fumehood.report.sections.comparisons import difference_json, versus_json
from fumehood.report.statistics.intervals import Estimate, estimates
from fumehood.report.statistics.metrics import Mean, Metric, Unit, mean
from fumehood.report.statistics.pairs import Difference, compare, difference
from fumehood.report.statistics.resources import spent
from fumehood.report.text_table import TextTable
from fumehood.report.traces import read_traces

COSTS = {
    "calls": "Calls of tools",
    "model_calls": "Calls of the model",
    "model_tokens": "Tokens",
    "model_microusd": "Money",
}
"""Resource → title; each of an episode as a whole, over all its seats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaffoldEffect:
    """One scaffold."""

    scaffold: str
    subject: Subject
    counts: Counts
    success: Estimate
    costs: Mapping[str, Mean]
    """By resource, over graded episodes."""
    tokens_per_success: float | None
    """All tokens of graded episodes, by the number of those that succeeded; None where none did."""
    versus: Versus | None
    """Against the one that others are compared with; None for that one itself."""
    cost_changes: Mapping[str, Difference]
    """By resource: this one minus that one, on the same pairs."""


@dataclass(frozen=True, slots=True)
class ScaffoldEffects:
    """All of them, the one that others are compared with first."""

    model: str
    each: tuple[ScaffoldEffect, ...]


def scaffold_effects(runs: Sequence[Run], wanted: Sequence[str], against: str) -> ScaffoldEffects:
    """Compare scaffolds on the same tasks and with the same model.

    Args:
        runs: that hold them, each scaffold in one of the runs.
        wanted: names of scaffolds; those that no run has are left out.
        against: the one that others are compared with.

    Raises:
        InputError: the runs asked different models, hold a scaffold twice, do not hold ``against`` and
            another, or a trace cannot be read.
    """
    subjects = _by_scaffold(runs, wanted)
    others = [name for name in subjects if name != against]
    if against not in subjects or not others:
        known = ", ".join(subjects) or "none"
        raise InputError(
            f"nothing to compare: {against} and another scaffold are needed, there are: {known}"
        )
    amounts = dict[int, dict[str, float]]()
    for subject in subjects.values():
        amounts |= _amounts(subject)
    metrics = [_metric(name, amounts) for name in COSTS]
    first = subjects[against]
    found = [_effect(name, subjects[name], metrics, first) for name in others]
    return ScaffoldEffects(_model(runs), (_effect(against, first, metrics, None), *found))


def _effect(
    name: str, subject: Subject, metrics: Sequence[Metric], against: Subject | None
) -> ScaffoldEffect:
    costs = {metric.name: mean(metric, subject.results) for metric in metrics}
    comparison = compare(against.results, subject.results) if against else None
    pairs = comparison.pairing.pairs if comparison else ()
    return ScaffoldEffect(
        scaffold=name,
        subject=subject,
        counts=count(subject.results),
        success=estimates(subject.results)["task_success"],
        costs=costs,
        tokens_per_success=_per_success(costs["model_tokens"], subject.results),
        versus=Versus(against, subject, comparison) if against and comparison else None,
        cost_changes={metric.name: difference(pairs, metric) for metric in metrics},
    )


def _by_scaffold(runs: Sequence[Run], wanted: Sequence[str]) -> dict[str, Subject]:
    found: dict[str, Subject] = {}
    for subject in subjects_of(runs):
        name = _scaffold_of(subject)
        if name not in wanted:
            continue
        if name in found:
            one, other = found[name].run.label, subject.run.label
            raise InputError(
                f"{name} is there twice, in {one} and {other}: name runs that hold it once"
            )
        found[name] = subject
    return found


def _scaffold_of(subject: Subject) -> str:
    """Return what a built-in agent is, whatever its run calls it."""
    named = subject.run.manifest.get("agents")
    for agent in named if isinstance(named, list) else ():
        if (
            isinstance(agent, dict)
            and agent["label"] == subject.agent
            and agent["kind"] == "builtin"
        ):
            return str(agent["name"])
    return ""


def _model(runs: Sequence[Run]) -> str:
    """Return the model that all runs name.

    Raises:
        InputError: they name several.
    """
    configs = [run.manifest.get("config") for run in runs]
    models = {str(config.get("model")) for config in configs if isinstance(config, dict)}
    if len(models) > 1:
        raise InputError(f"the runs asked different models: {', '.join(sorted(models))}")
    return "".join(models)


def _amounts(subject: Subject) -> dict[int, dict[str, float]]:
    """Return what each result cost, by its identity: results of several runs may have one name."""
    found: dict[int, dict[str, float]] = {}
    for result, trace in read_traces(subject.run.folder, subject.results):
        if trace.evidence is None:
            continue
        entries = [entry.amounts for entry in spent(result, trace)]
        found[id(result)] = {name: sum(own.get(name, 0.0) for own in entries) for name in COSTS}
    return found


def _metric(name: str, amounts: Mapping[int, Mapping[str, float]]) -> Metric:
    def of(result: Result) -> float | None:
        own = amounts.get(id(result))
        return own[name] if own else None

    return Metric(name, COSTS[name], Unit.COUNT, of)


def _per_success(tokens: Mean, results: Sequence[Result]) -> float | None:
    successes = sum(result.success is True for result in results)
    return (
        tokens.value * tokens.over / successes if tokens.value is not None and successes else None
    )


UNITS = {"model_microusd": "µ$"}


def cost_table(effects: ScaffoldEffects) -> TextTable:
    """Return what each scaffold is worth and what it costs, an episode."""
    header = (
        "Scaffold",
        "Success",
        "Of",
        *(COSTS[name] for name in _told(effects)),
        "Tokens a success",
    )
    rows = [
        (
            one.scaffold,
            wording.estimate(one.success, Unit.SHARE),
            _graded(one),
            *(_amount(one.costs[name].value, name) for name in _told(effects)),
            _amount(one.tokens_per_success, "model_tokens"),
        )
        for one in effects.each
    ]
    note = "Means over graded episodes; in brackets 95 % intervals over tasks."
    return TextTable(f"Scaffolds around {effects.model}", header, rows, note=note)


def cost_change_table(effects: ScaffoldEffects) -> TextTable:
    """Return how much more each costs than the one that it is compared with, on the same tasks."""
    first = effects.each[0].scaffold
    header = ("Compared", *(COSTS[name] for name in _told(effects)))
    rows = [
        (
            f"{first} → {one.scaffold}",
            *(_change(one.cost_changes[name], name) for name in _told(effects)),
        )
        for one in effects.each[1:]
    ]
    note = "Second minus first an episode, on the same tasks, paired; 95 % intervals over tasks."
    return TextTable("What it costs", header, rows, note=note)


def effects_json(effects: ScaffoldEffects) -> JsonObject:
    """Return everything that the tables show, and every flip."""
    return {
        "model": effects.model,
        "against": effects.each[0].scaffold,
        "scaffolds": [_effect_json(one) for one in effects.each],
    }


def _effect_json(one: ScaffoldEffect) -> JsonObject:
    ends = one.success.interval
    return {
        "scaffold": one.scaffold,
        "agent": one.subject.agent,
        "run": str(one.subject.run.folder.path),
        "episodes": one.counts.episodes,
        "graded": one.counts.graded,
        "infra": one.counts.infra,
        "success_rate": one.success.value,
        "interval": [ends.low, ends.high] if ends else None,
        "costs": {name: found.value for name, found in one.costs.items()},
        "tokens_per_success": one.tokens_per_success,
        "versus": versus_json(one.versus) if one.versus else None,
        "cost_changes": {
            name: difference_json(found) for name, found in one.cost_changes.items() if one.versus
        },
    }


def _told(effects: ScaffoldEffects) -> list[str]:
    """Return the resources that anybody spent: without prices there is no money to speak of."""
    return [name for name in COSTS if any(one.costs[name].value for one in effects.each)]


def _graded(one: ScaffoldEffect) -> str:
    left_out = wording.missing(one.counts)
    return f"{one.counts.graded:,}" + (f" ({left_out})" if left_out else "")


def _amount(value: float | None, name: str) -> str:
    return wording.NONE if value is None else wording.quantity(value, UNITS.get(name, ""))


def _change(found: Difference, name: str) -> str:
    if name not in UNITS:
        return wording.change(found, Unit.COUNT)
    if found.value is None:
        return wording.NONE
    ends = found.interval
    told = [f"{'+' if found.value > 0 else ''}{_amount(found.value, name)}"]
    if ends:
        told.append(f"[{_amount(ends.low, name)}, {_amount(ends.high, name)}]")
    return " ".join(told)
