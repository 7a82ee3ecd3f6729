"""Tables of an experiment: success by model, suite and domain, effects, and success within budgets.

Suites are never pooled: a number is of one suite, or a mean over suites in which each suite has the
same weight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fumehood.core.json_values import Json, JsonObject
from fumehood.report import wording
from fumehood.report.data_table import ALL, DataTable, Row, integers, numbers, texts
from fumehood.report.findings import Baselines, Findings, SubjectFindings
from fumehood.report.results import Result, Results, by_domain, by_task, count
from fumehood.report.runs import FACTORS, OWN_BUDGET, Subject
from fumehood.report.statistics.clusters import Clusters, clustered_intervals, mean_over_suites
from fumehood.report.statistics.effects import Effect, effects_of, levels_of
from fumehood.report.statistics.intervals import Estimate, ends, estimates
from fumehood.report.statistics.metrics import (
    THE_EIGHT,
    Metric,
    Unit,
    aspects_of,
    graded,
    mean,
    score_metrics,
    solved_within,
)
from fumehood.report.statistics.resources import MODEL_COSTS, model_totals
from fumehood.report.text_table import TextTable

SUCCESS = THE_EIGHT[0]
TITLES = {
    "suite": "Suite",
    "model": "Model",
    "agent": "Agent",
    "data_mode": "Data mode",
    "faults": "Faults",
    "budget": "Budget",
    "team": "Team",
    "prompts": "Prompts",
}
WHO = ("model", "agent")
"""Factors that identify the tested agent."""
CONDITIONS = ("data_mode", "faults", "budget", "team", "prompts")

NO_HEADLINE = "A dash: over 10 % of the planned episodes have no score."
OVER_ALL = (
    "Over all data modes, faults, budgets and trials. In brackets: 95 % intervals over tasks. "
    f"{NO_HEADLINE}"
)

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """The agents of several runs, whose factors differ."""

    subjects: tuple[Subject, ...]
    levels: Mapping[str, Sequence[str]]
    """By factor with several levels."""
    costs: Mapping[str, Mapping[str, float]]
    """By label of an agent: its total requests to models, tokens and money."""
    baselines: Mapping[str, Baselines] = field(default_factory=dict)
    """By label of an agent."""

    @property
    def suites(self) -> list[str]:
        """The names of all suites."""
        return list(dict.fromkeys(subject.levels["suite"] for subject in self.subjects))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Success, and the partial and rubric scores of the scorers."""
        results = [result for subject in self.subjects for result in subject.results]
        return (SUCCESS, *aspects_of(results), *score_metrics(results))

    def grouped(self, factors: Sequence[str]) -> dict[Key, list[Subject]]:
        """Return the agents by their levels of some factors."""
        groups: dict[Key, list[Subject]] = defaultdict(list)
        for subject in self.subjects:
            groups[tuple(subject.levels[factor] for factor in factors)].append(subject)
        return groups


def experiment_of(agents: Sequence[SubjectFindings]) -> Experiment | None:
    """Return the experiment; None if only agents differ, or one suite name has two contents."""
    subjects = tuple(agent.subject for agent in agents)
    levels = levels_of(subjects)
    cores: dict[tuple[str, str], str] = {}
    for subject in subjects:
        for result in subject.results:
            task = subject.levels["suite"], result.task.task_id
            if cores.setdefault(task, result.task.core_digest) != result.task.core_digest:
                return None
    costs = {agent.subject.label: model_totals(agent.spreads) for agent in agents}
    baselines = {agent.subject.label: agent.baselines for agent in agents}
    return Experiment(subjects, levels, costs, baselines) if levels.keys() - {"agent"} else None


def experiment_tables(findings: Findings) -> list[TextTable]:
    """Return the tables of finished runs, for a terminal."""
    experiment = experiment_of(findings.subjects)
    return tables_of(experiment) if experiment else []


def tables_of(experiment: Experiment) -> list[TextTable]:
    """Return all tables of an experiment."""
    effects = effects_of(experiment.subjects, experiment.metrics)
    return [
        suite_table(experiment),
        domain_table(experiment),
        condition_table(experiment),
        budget_table(experiment),
        effect_table(effects, 1, "Main effects"),
        effect_table(effects, 2, "Interactions"),
        cell_table(experiment),
    ]


def data_of(experiment: Experiment) -> list[DataTable]:
    """Return the numbers of all tables."""
    effects = effects_of(experiment.subjects, experiment.metrics)
    return [condition_data(experiment), effect_data(effects), cell_data(experiment)]


def experiment_json(findings: Findings) -> JsonObject:
    """Return the numbers of all tables, for a command."""
    experiment = experiment_of(findings.subjects)
    if experiment is None:
        return {}
    return {table.name: records_of(table) for table in data_of(experiment)}


def records_of(table: DataTable) -> list[Json]:
    """Return the rows of a data table as JSON objects."""
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def results_in(subjects: Iterable[Subject], suite: str) -> list[Result]:
    """Return the results of agents in one suite; none if too many episodes have no score for a
    headline number, because an agent could choose the others."""
    own = [subject for subject in subjects if subject.levels["suite"] == suite]
    results = [result for subject in own for result in subject.results]
    planned = sum(subject.planned for subject in own)
    return results if wording.why_no_headline(count(results), planned) is None else []


def macro_mean(by_suite: Sequence[Results]) -> Estimate:
    """Return the mean over suites of the success; it has no value if one suite has none."""
    clusters, episodes = [], 0
    for results in by_suite:
        values = [
            [value for result in own if (value := SUCCESS.of(result)) is not None]
            for own in by_task(graded(results)).values()
        ]
        known = [own for own in values if own]
        if not known:
            return Estimate(None, 0, 0, None)
        episodes += sum(map(len, known))
        sums = np.array([[sum(own)] for own in known])
        clusters.append(Clusters(sums, np.array([[float(len(own))] for own in known])))
    value = float(mean_over_suites(clusters)[0])
    tasks = sum(len(suite.sums) for suite in clusters)
    interval = clustered_intervals(clusters)[0] if 0 < value < 1 else None
    return Estimate(value, episodes, tasks, interval)


def ranks(values: Mapping[Key, float | None]) -> dict[Key, int]:
    """Return the rank of each value, the highest first; equal values share a rank."""
    known = {key: value for key, value in values.items() if value is not None}
    return {key: 1 + sum(other > value for other in known.values()) for key, value in known.items()}


def suite_table(experiment: Experiment) -> TextTable:
    """Return success of each model and agent (rows) on each suite (columns), and of the
    baselines."""
    suites = experiment.suites
    several = len(suites) > 1
    by_suite = {
        key: [results_in(subjects, suite) for suite in suites]
        for key, subjects in experiment.grouped(WHO).items()
    }
    macro = {key: macro_mean(results) for key, results in by_suite.items()}
    places = ranks({key: own.value for key, own in macro.items()})
    rows = [
        (
            *(part or wording.NONE for part in key),
            *map(_success, by_suite[key]),
            *((wording.estimate(own, Unit.SHARE),) if several else ()),
            str(places.get(key, wording.NONE)),
        )
        for key, own in macro.items()
    ]
    rows += _baseline_rows(experiment)
    means = ("Mean over suites",) if several else ()
    header = (*(TITLES[name] for name in WHO), *suites, *means, "Rank")
    note = f"{OVER_ALL} The mean over suites gives each suite the same weight; the rank follows it."
    return TextTable("Success by model and suite", header, rows, names=2, note=note)


def _baseline_rows(experiment: Experiment) -> Iterator[Key]:
    """Yield the rows of no-op and oracle, as in :func:`suite_table`."""
    by_suite = [
        wording.baseline_cells(own.on() for own, _ in _with_baselines(experiment, suite))
        for suite in experiment.suites
    ]
    ends = [wording.NONE] * (1 + (len(by_suite) > 1))
    for title, cells in zip(("no-op", "oracle"), zip(*by_suite, strict=True), strict=True):
        if any(cell != wording.NONE for cell in cells):
            yield (wording.NONE, title, *cells, *ends)


def _with_baselines(experiment: Experiment, suite: str) -> list[tuple[Baselines, Results]]:
    """Return the baselines of each agent in a suite, with its results."""
    return [
        (experiment.baselines.get(subject.label, Baselines()), subject.results)
        for subject in experiment.subjects
        if subject.levels["suite"] == suite
    ]


def domain_table(experiment: Experiment) -> TextTable:
    """Return success by domain: one column for each model with each agent."""
    who = experiment.grouped(WHO)
    rows = []
    for suite in experiment.suites:
        own = {key: results_in(subjects, suite) for key, subjects in who.items()}
        grouped = {key: by_domain(results) for key, results in own.items()}
        domains = list(dict.fromkeys(name for groups in grouped.values() for name in groups))
        if len(domains) > 1:
            played = [
                (baselines, by_domain(results))
                for baselines, results in _with_baselines(experiment, suite)
            ]
            rows += [
                (
                    *(suite, domain),
                    *wording.baseline_cells(
                        own.over(groups.get(domain, ())) for own, groups in played
                    ),
                    *(_success(groups.get(domain, [])) for groups in grouped.values()),
                )
                for domain in domains
            ]
    header = (
        "Suite",
        "Domain",
        "No-op",
        "Oracle",
        *(" · ".join(part for part in key if part) for key in who),
    )
    return TextTable("Success by model and domain", header, rows, names=2, note=OVER_ALL)


def _success(results: Results) -> str:
    own = estimates(results, (SUCCESS,))[SUCCESS.name]
    return wording.estimate(own, Unit.SHARE)


def condition_table(experiment: Experiment) -> TextTable:
    """Return success under each condition, with mean over suites and rank."""
    varied = [factor for factor in CONDITIONS if factor in experiment.levels]
    several = len(experiment.suites) > 1
    rows: list[Key] = []
    for condition, subjects in experiment.grouped(varied).items() if varied else ():
        part = replace(experiment, subjects=tuple(subjects))
        who = part.grouped(WHO)
        by_suite = {
            key: [results_in(own, suite) for suite in experiment.suites] for key, own in who.items()
        }
        macro = {key: macro_mean(results) for key, results in by_suite.items()}
        places = ranks({key: own.value for key, own in macro.items()})
        rows += [
            (
                *condition,
                *(part or wording.NONE for part in key),
                *map(_success, by_suite[key]),
                *((wording.estimate(own, Unit.SHARE),) if several else ()),
                str(places.get(key, wording.NONE)),
            )
            for key, own in macro.items()
        ]
        rows += [(*condition, *row) for row in _baseline_rows(part)]
    names = [*varied, *WHO]
    means = ("Mean over suites",) if several else ()
    header = (*(TITLES[name] for name in names), *experiment.suites, *means, "Rank")
    note = f"In brackets: 95 % intervals over tasks. Ranks are within one condition. {NO_HEADLINE}"
    return TextTable("Success by condition", header, rows, names=len(names), note=note)


def budget_table(experiment: Experiment) -> TextTable:
    """Return S(k), measured with a budget of k calls and computed from episodes without it."""
    names = ("suite", *WHO, "data_mode", "faults", "team", "prompts")
    groups = experiment.grouped(names)
    bounded = {
        key: {calls: subject for subject in own if (calls := _calls_of(subject)) is not None}
        for key, own in groups.items()
    }
    budgets = sorted({calls for own in bounded.values() for calls in own})
    rows = []
    for key, subjects in groups.items():
        plain = [one for one in subjects if one.levels["budget"] == OWN_BUDGET]
        cells = []
        for calls in budgets:
            played = bounded[key].get(calls)
            of_played, of_plain = (
                results_in(own, key[0]) for own in ([played] if played else [], plain[:1])
            )
            success, within = mean(SUCCESS, of_played).value, mean(_within(calls), of_plain).value
            cells += [wording.amount(success, Unit.SHARE), wording.amount(within, Unit.SHARE)]
        rows.append((*(part or wording.NONE for part in key), *cells))
    pairs = [(f"S({calls})", f"S({calls}) filtered") for calls in budgets]
    header = (
        *(TITLES[name] for name in names),
        *(title for pair in pairs for title in pair),
    )
    note = (
        "S(k): success with a budget of k calls. Filtered: share of episodes with the tasks' own "
        "budgets that succeeded with at most k calls, as in the ToolMisuseBench paper. "
        f"{NO_HEADLINE}"
    )
    return TextTable(
        "Success within k calls", header, rows if budgets else [], names=len(names), note=note
    )


def _calls_of(subject: Subject) -> int | None:
    """Return the bound of calls; None if there is none, or if another bound is changed, too."""
    changes = {name: bound for name, bound in subject.run.budget.items() if bound is not None}
    calls = changes.pop("calls", None)
    return calls if isinstance(calls, int) and not changes else None


def _within(calls: int) -> Metric:
    return Metric(f"s_{calls}", "", Unit.SHARE, lambda result: solved_within(calls, result))


def effect_table(effects: Iterable[Effect], order: int, title: str) -> TextTable:
    """Return the main effects (order 1) or the interactions (order 2)."""
    rows = [
        (
            effect.metric,
            effect.suite,
            " × ".join(TITLES[factor] for factor in effect.factors),
            _contrast(effect),
            wording.signed(effect.value, effect.interval, effect.unit),
            wording.p_value(effect.p_value),
            wording.p_value(effect.p_holm),
            f"{effect.pairs:,} of {effect.tasks:,} tasks",
        )
        for effect in effects
        if len(effect.factors) == order
    ]
    header = ("Metric", "Suite", "Factor", "Levels", "Difference", "p", "p (Holm)", "Pairs")
    note = (
        "Paired by task, trial and seed. In brackets: 95 % intervals over tasks. "
        "p: McNemar's test for one pair per task, otherwise sign flips over tasks. "
        "p (Holm): corrected for all rows of the same suite and metric."
    )
    return TextTable(title, header, rows, names=4, note=note)


def _contrast(effect: Effect) -> str:
    pairs = zip(effect.baseline, effect.level, strict=True)
    return "; ".join(f"{baseline or wording.NONE} → {level}" for baseline, level in pairs)


def cell_table(experiment: Experiment) -> TextTable:
    """Return the episodes of each combination, and what they spent on models if they did."""
    used = [name for name in MODEL_COSTS if any(own[name] for own in experiment.costs.values())]
    rows = [
        (
            *(subject.levels[factor] or wording.NONE for factor in FACTORS),
            f"{counts.episodes:,}",
            f"{counts.graded:,}",
            f"{counts.ungraded:,}",
            f"{counts.infra:,}",
            *(
                wording.quantity(experiment.costs[subject.label][name], MODEL_COSTS[name].unit)
                for name in used
            ),
        )
        for subject in experiment.subjects
        for counts in (count(subject.results),)
    ]
    costs = (MODEL_COSTS[name].title for name in used)
    header = (*TITLES.values(), "Episodes", "Graded", "Ungraded", "Infra", *costs)
    note = "Use of models: totals of all seats and attempts, lost ones included." if used else ""
    return TextTable("Episodes", header, rows, names=len(TITLES), note=note)


def cell_data(experiment: Experiment) -> DataTable:
    """Return the episodes and the costs of each combination."""
    counted = integers("episodes", "graded", "ungraded", "infra", *MODEL_COSTS)
    rows: list[Row] = []
    for subject in experiment.subjects:
        counts, costs = count(subject.results), experiment.costs[subject.label]
        numbers_of = (counts.episodes, counts.graded, counts.ungraded, counts.infra)
        levels = (subject.levels[name] for name in FACTORS)
        rows.append((*levels, *numbers_of, *(int(costs[name]) for name in MODEL_COSTS)))
    return DataTable("cells", (*texts(*FACTORS), *counted), rows)


def condition_data(experiment: Experiment) -> DataTable:
    """Return each metric of each agent under each condition: whole suites and domains."""
    columns = (
        *texts(*FACTORS, "model_parameters", "scaffold", "domain", "metric"),
        *numbers("mean", "low", "high"),
        *integers("over", "tasks", "episodes", "graded", "ungraded", "infra"),
    )
    rows: list[Row] = []
    for subject in experiment.subjects:
        about = (*(subject.levels[name] for name in FACTORS), subject.parameters, subject.scaffold)
        groups = {ALL: list(subject.results), **by_domain(subject.results)}
        for domain, results in groups.items():
            counts = count(results)
            for name, own in estimates(results, experiment.metrics).items():
                rows.append(
                    (
                        *(*about, domain, name, own.value, *ends(own.interval)),
                        *(own.over, own.tasks, counts.episodes, counts.graded),
                        *(counts.ungraded, counts.infra),
                    )
                )
    return DataTable("conditions", columns, rows)


def effect_data(effects: Iterable[Effect]) -> DataTable:
    """Return all effects."""
    columns = (
        *texts("metric", "suite", "factor", "factor_2"),
        *texts("baseline", "level", "baseline_2", "level_2"),
        *numbers("difference", "low", "high"),
        *integers("tasks", "pairs"),
        *texts("test"),
        *numbers("p_value", "p_holm"),
    )
    rows = [
        (
            *(effect.metric, effect.suite, effect.factors[0], _second(effect.factors)),
            *(effect.baseline[0], effect.level[0]),
            *(_second(effect.baseline), _second(effect.level)),
            *(effect.value, *ends(effect.interval), effect.tasks, effect.pairs),
            *(effect.test.value, effect.p_value, effect.p_holm),
        )
        for effect in effects
    ]
    return DataTable("effects", columns, rows)


def _second(names: tuple[str, ...]) -> str | None:
    return names[1] if len(names) > 1 else None
