"""Compares runs that differ in one factor: models, faults or budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fumehood.core.errors import InputError
from fumehood.report.compare.dimension import (
    Compared,
    CompareOptions,
    Target,
    agents_of_targets,
)
from fumehood.report.experiment import (
    TITLES,
    Experiment,
    budget_table,
    cell_table,
    condition_table,
    effect_data,
    effect_table,
    records_of,
)
from fumehood.report.statistics.effects import levels_of, main_effects


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

    def compare(self, targets: Sequence[Target], options: CompareOptions) -> Compared:
        """Compare all levels with the first one, or with ``--against``."""
        subjects = [subject for own in agents_of_targets(targets) for subject in own]
        levels = levels_of(subjects)
        known = levels.get(self.factor, [])
        if len(known) < 2:
            raise InputError(f"the runs do not differ in {self.factor}: name other runs")
        against = options.against or known[0]
        if against not in known:
            raise InputError(f"no run has the {self.factor} {against!r}; known: {', '.join(known)}")
        experiment = Experiment(tuple(subjects), levels)
        effects = main_effects(subjects, experiment.metrics, self.factor, against)
        if not effects:
            raise InputError("nothing to compare: the runs share no task, trial and seed")
        return Compared(
            [
                effect_table(effects, 1, f"Effect of {TITLES[self.factor].lower()}"),
                budget_table(experiment),
                condition_table(experiment),
                cell_table(experiment),
            ],
            {
                "factor": self.factor,
                "against": against,
                "effects": records_of(effect_data(effects)),
            },
            subjects,
        )


class ByModel(ByFactor):
    """Compares models."""

    factor, setting = "model", ""


class ByFaults(ByFactor):
    """Compares fault levels; the tasks may differ in their faults."""

    factor, setting = "faults", "faults"


class ByBudget(ByFactor):
    """Compares budgets; the tasks may differ in their budgets."""

    factor, setting = "budget", "budget"
