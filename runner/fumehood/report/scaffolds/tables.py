"""The effect of scaffolds as tables for people and as JSON for programs."""

from __future__ import annotations

from fumehood.core.json_values import JsonObject
from fumehood.report import wording
from fumehood.report.scaffolds.effects import COSTS, ScaffoldEffect, ScaffoldEffects
from fumehood.report.statistics.metrics import Unit
from fumehood.report.statistics.pairs import Difference
from fumehood.report.tables.reading import ReadingTable
from fumehood.report.tables.versus import difference_json, versus_json

UNITS = {"model_microusd": "µ$"}


def cost_table(effects: ScaffoldEffects) -> ReadingTable:
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
    return ReadingTable(f"Scaffolds around {effects.model}", header, rows, note=note)


def cost_change_table(effects: ScaffoldEffects) -> ReadingTable:
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
    return ReadingTable("What it costs", header, rows, note=note)


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
