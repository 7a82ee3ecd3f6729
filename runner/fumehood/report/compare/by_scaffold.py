"""Compares scaffolds: agents with the same model on the same tasks, by success and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.report import wording
from fumehood.report.compare.costs import COSTS, amount, cost_change_table, cost_metrics
from fumehood.report.compare.dimension import Compared, CompareOptions, Target, check_comparable
from fumehood.report.findings import Versus
from fumehood.report.results import Counts, Result, count
from fumehood.report.runs import Run, Subject, subjects_of
from fumehood.report.sections.comparisons import (
    difference_json,
    interval_json,
    versus_json,
    versus_table,
)
from fumehood.report.statistics.intervals import Estimate, estimates
from fumehood.report.statistics.metrics import Mean, Metric, Unit, mean
from fumehood.report.statistics.pairs import Difference, compare, difference
from fumehood.report.text_table import TextTable

DEFAULT_BASELINE = "react"


class ByScaffold:
    """Compares scaffolds on the same tasks, with the same model, trials and seeds."""

    def arms(
        self, settings: Mapping[str, Any], options: CompareOptions
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return one run of all scaffolds."""
        return {"scaffolds": {"agents": _names(options)}}

    def compare(self, targets: Sequence[Target], options: CompareOptions) -> Compared:
        """Compare the scaffolds that the runs hold."""
        runs = list({id(target.run): target.run for target in targets}.values())
        if len(runs) < len(targets):
            raise InputError("the same run is named twice; name each run once")
        effects = scaffold_effects(runs, _names(options), options.against or DEFAULT_BASELINE)
        versus = [effect.versus for effect in effects.scaffolds if effect.versus]
        check_comparable(versus)
        baseline, *others = effects.scaffolds
        changes = [
            (f"{baseline.scaffold} → {other.scaffold}", other.cost_changes) for other in others
        ]
        return Compared(
            [cost_table(effects), versus_table(versus), cost_change_table(changes)],
            effects_json(effects),
            [effect.subject for effect in effects.scaffolds],
        )


def _names(options: CompareOptions) -> list[str]:
    """Return the scaffolds to compare, the baseline first."""
    return list(dict.fromkeys((options.against or DEFAULT_BASELINE, *options.scaffolds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaffoldEffect:
    """The results of one scaffold."""

    scaffold: str
    subject: Subject
    counts: Counts
    success: Estimate
    costs: Mapping[str, Mean]
    """By resource: mean over graded episodes."""
    tokens_per_success: float | None
    """Tokens of all graded episodes divided by the successes; None without a success."""
    versus: Versus | None
    """Comparison with the baseline scaffold; None for the baseline itself."""
    cost_changes: Mapping[str, Difference]
    """By resource: this scaffold minus the baseline, on the same pairs."""


@dataclass(frozen=True, slots=True)
class ScaffoldEffects:
    """The results of all scaffolds, the baseline first."""

    model: str
    scaffolds: tuple[ScaffoldEffect, ...]


def scaffold_effects(runs: Sequence[Run], names: Sequence[str], against: str) -> ScaffoldEffects:
    """Compare scaffolds on the same tasks and with the same model.

    Args:
        runs: that contain the scaffolds, each scaffold in one run.
        names: of scaffolds; names that no run contains are ignored.
        against: the baseline scaffold.

    Raises:
        InputError: the runs use different models, contain a scaffold twice, lack ``against`` or any
        other
            scaffold, or a trace cannot be read.
    """
    subjects = _by_scaffold(runs, names)
    others = [name for name in subjects if name != against]
    if against not in subjects or not others:
        known = ", ".join(subjects) or "none"
        raise InputError(
            f"nothing to compare: {against} and another scaffold are needed, the runs have: {known}"
        )
    metrics = cost_metrics(subjects.values())
    first = subjects[against]
    effects = [_effect(name, subjects[name], metrics, first) for name in others]
    return ScaffoldEffects(_model(runs), (_effect(against, first, metrics, None), *effects))


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


def _by_scaffold(runs: Sequence[Run], names: Sequence[str]) -> dict[str, Subject]:
    subjects: dict[str, Subject] = {}
    for subject in subjects_of(runs):
        name = _scaffold_of(subject)
        if name not in names:
            continue
        if name in subjects:
            first, second = subjects[name].run.label, subject.run.label
            raise InputError(
                f"scaffold {name} is in two runs, {first} and {second}; "
                "name runs that contain it once"
            )
        subjects[name] = subject
    return subjects


def _scaffold_of(subject: Subject) -> str:
    """Return the name of a built-in agent, which its label may hide; empty for other agents."""
    named = subject.identity
    return str(named["name"]) if named.get("kind") == "builtin" else ""


def _model(runs: Sequence[Run]) -> str:
    """Return the model of all runs.

    Raises:
        InputError: the runs use several.
    """
    models = {str(run.config.get("model")) for run in runs if run.config}
    if len(models) > 1:
        raise InputError(f"the runs use different models: {', '.join(sorted(models))}")
    return "".join(models)


def _per_success(tokens: Mean, results: Sequence[Result]) -> float | None:
    successes = sum(result.success is True for result in results)
    return (
        tokens.value * tokens.over / successes if tokens.value is not None and successes else None
    )


def cost_table(effects: ScaffoldEffects) -> TextTable:
    """Return success and costs of each scaffold."""
    costs = (COSTS[name] for name in _used(effects))
    header = ("Scaffold", "Success", "Of", *costs, "Tokens per success")
    rows = [
        (
            effect.scaffold,
            wording.estimate(effect.success, Unit.SHARE),
            _graded(effect),
            *(amount(effect.costs[name].value, name) for name in _used(effects)),
            amount(effect.tokens_per_success, "model_tokens"),
        )
        for effect in effects.scaffolds
    ]
    note = "Means per graded episode; in brackets: 95 % intervals over tasks."
    return TextTable(f"Scaffolds with the model {effects.model}", header, rows, note=note)


def effects_json(effects: ScaffoldEffects) -> JsonObject:
    """Return the contents of the tables, and every flipped task."""
    return {
        "model": effects.model,
        "against": effects.scaffolds[0].scaffold,
        "scaffolds": [_effect_json(effect) for effect in effects.scaffolds],
    }


def _effect_json(effect: ScaffoldEffect) -> JsonObject:
    return {
        "scaffold": effect.scaffold,
        "agent": effect.subject.agent,
        "run": str(effect.subject.run.folder.path),
        "episodes": effect.counts.episodes,
        "graded": effect.counts.graded,
        "infra": effect.counts.infra,
        "infra_attempts": effect.counts.infra + effect.counts.repeated,
        "success_rate": effect.success.value,
        "interval": interval_json(effect.success),
        "costs": {name: mean_cost.value for name, mean_cost in effect.costs.items()},
        "tokens_per_success": effect.tokens_per_success,
        "versus": versus_json(effect.versus) if effect.versus else None,
        "cost_changes": {
            name: difference_json(change)
            for name, change in effect.cost_changes.items()
            if effect.versus
        },
    }


def _used(effects: ScaffoldEffects) -> list[str]:
    """Return the resources that any scaffold used; without prices there is no money."""
    return [name for name in COSTS if any(effect.costs[name].value for effect in effects.scaffolds)]


def _graded(effect: ScaffoldEffect) -> str:
    left_out = wording.missing(effect.counts)
    return f"{effect.counts.graded:,}" + (f" ({left_out})" if left_out else "")
