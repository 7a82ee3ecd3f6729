"""Compares runs that differ in one factor: models, faults or budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from fumehood.core.errors import InputError
from fumehood.report.compare.costs import costs_of
from fumehood.report.compare.dimension import (
    Compared,
    CompareOptions,
    Target,
    agents_of_targets,
)
from fumehood.report.experiment import (
    TITLES,
    WHO,
    Experiment,
    budget_table,
    cell_table,
    condition_table,
    effect_data,
    effect_table,
    records_of,
)
from fumehood.report.runs import Subject
from fumehood.report.statistics.effects import Effect, levels_of, main_effects
from fumehood.report.text_table import TextTable


class ByFactor:
    """Compares the levels of one factor on the tasks that all of them share."""

    factor: ClassVar[str]
    setting: ClassVar[str]
    """Setting of a run that states the level; empty if runs cannot be made from one file."""

    def arms(
        self, settings: Mapping[str, Any], options: CompareOptions
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return a run without the setting and a run with it."""
        if not self.setting:
            raise InputError(
                f"name finished runs to compare by {self.factor}, or use fumehood experiment"
            )
        if not settings.get(self.setting):
            raise InputError(f"state {self.setting} of the second run in --config")
        if not options.agents:
            raise InputError("name at least one agent with --agent")
        agents = list(options.agents)
        return {"without": {"agents": agents, self.setting: None}, "with": {"agents": agents}}

    def lowest(self, subjects: Sequence[Subject]) -> str | None:
        """Return the lowest level; None if levels have no order."""
        return None

    def compare(self, targets: Sequence[Target], options: CompareOptions) -> Compared:
        """Compare all levels with ``--against``, or else the lowest or the first one."""
        subjects = [subject for own in agents_of_targets(targets) for subject in own]
        levels = levels_of(subjects)
        known = levels.get(self.factor, [])
        if len(known) < 2:
            raise InputError(f"the runs do not differ in {self.factor}: name other runs")
        lowest = self.lowest(subjects)
        against = options.against or lowest or known[0]
        if against not in known:
            raise InputError(f"no run has the {self.factor} {against!r}; known: {', '.join(known)}")
        reason = "--against" if options.against else "the lowest level" if lowest else "the first"
        experiment = Experiment(tuple(subjects), levels, costs_of(subjects))
        effects = main_effects(subjects, experiment.metrics, self.factor, against)
        if not effects:
            raise InputError("nothing to compare: the runs share no task, trial and seed")
        of_agents = {
            " · ".join(part for part in who if part): main_effects(
                own, experiment.metrics, self.factor, against
            )
            for who, own in experiment.grouped(
                [name for name in WHO if name != self.factor]
            ).items()
            if self.factor in levels_of(own)
        }
        whole = effect_table(effects, 1, f"Effect of {TITLES[self.factor].lower()}")
        return Compared(
            [
                replace(whole, note=f"Baseline: {against} ({reason}). {whole.note}"),
                _agent_table(of_agents, f"{whole.title}, by agent"),
                budget_table(experiment),
                condition_table(experiment),
                cell_table(experiment),
            ],
            {
                "factor": self.factor,
                "against": against,
                "baseline": reason,
                "effects": records_of(effect_data(effects)),
                "by_agent": {name: records_of(effect_data(own)) for name, own in of_agents.items()},
            },
            subjects,
        )


def _agent_table(of_agents: Mapping[str, Sequence[Effect]], title: str) -> TextTable:
    """Return the effects of each agent alone; empty if there is only one."""
    tables = {name: effect_table(effects, 1, title) for name, effects in of_agents.items()}
    rows = [(name, *row) for name, table in tables.items() for row in table.rows]
    header, note = next((("Agent", *own.header), own.note) for own in tables.values())
    return TextTable(title, header, rows if len(tables) > 1 else [], names=5, note=note)


class ByModel(ByFactor):
    """Compares models."""

    factor, setting = "model", ""


class ByFaults(ByFactor):
    """Compares fault levels; the tasks may differ in their faults."""

    factor, setting = "faults", "faults"


class ByBudget(ByFactor):
    """Compares budgets; the tasks may differ in their budgets."""

    factor, setting = "budget", "budget"

    def lowest(self, subjects: Sequence[Subject]) -> str | None:
        """Return the level with the smallest bounds; None if levels bound different resources."""
        bounds = {
            subject.levels["budget"]: {
                name: bound
                for name, bound in subject.run.budget.items()
                if isinstance(bound, int | float)
            }
            for subject in subjects
        }
        smallest = min(bounds, key=lambda level: sorted(bounds[level].items()))
        own = bounds[smallest]
        is_lowest = all(
            own.keys() == other.keys() and all(own[name] <= other[name] for name in own)
            for other in bounds.values()
        )
        return smallest if own and is_lowest else None
