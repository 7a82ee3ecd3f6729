"""Computes everything that a report shows, independent of the output format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fumehood.core.task import Suite
from fumehood.report.results import Counts, Results, by_domain, by_family, count
from fumehood.report.runs import Run, Subject
from fumehood.report.statistics.failures import Attribution, Label, attribute
from fumehood.report.statistics.intervals import Estimate, estimates
from fumehood.report.statistics.metrics import BUDGETS, graded, solved_within
from fumehood.report.statistics.pairs import Comparison, compare
from fumehood.report.statistics.resources import Spent, Spread, spent, spreads
from fumehood.report.statistics.trials import TrialRates, trial_rates
from fumehood.report.traces import read_traces

SHOWN_MAX = 12
"""With more agents, the page has no pictures and no overview of each agent."""


@dataclass(frozen=True, slots=True)
class GroupFindings:
    """The metrics of an agent over all its results, or over a group of them."""

    counts: Counts
    estimates: Mapping[str, Estimate]
    """By metric name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectFindings:
    """The findings about one agent of one run."""

    subject: Subject
    whole: GroupFindings
    by_fault: Mapping[str, GroupFindings]
    by_domain: Mapping[str, GroupFindings]
    curve: tuple[float, ...]
    """S(k) for k = 0 … 32; empty if nothing is graded."""
    trials: TrialRates
    spreads: Mapping[tuple[str, str], Spread]
    """By seat and resource name."""
    attributions: Mapping[str, Attribution]
    """Why episodes failed, by episode name."""

    def primaries(self) -> dict[Label, int]:
        """Count failed episodes by primary label."""
        labels = [attribution.primary for attribution in self.attributions.values()]
        return {label: labels.count(label) for label in Label if label in labels}

    def secondaries(self) -> dict[Label, int]:
        """Count failed episodes by secondary label; an episode may have several."""
        labels = [
            label for attribution in self.attributions.values() for label in attribution.secondary
        ]
        return {label: labels.count(label) for label in Label if label in labels}


@dataclass(frozen=True, slots=True)
class Versus:
    """A comparison of two agents."""

    first: Subject
    second: Subject
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings about all runs."""

    runs: tuple[Run, ...]
    subjects: tuple[SubjectFindings, ...]
    versus: tuple[Versus, ...]
    """Every other agent against the baseline."""

    @property
    def mark(self) -> str:
        """The text that marks every output; empty if all runs are verified."""
        marks = (run.folder.provenance.mark for run in self.runs)
        return "; ".join(dict.fromkeys(mark for mark in marks if mark))

    @property
    def are_few(self) -> bool:
        """Whether pictures can show all agents; the tables of an experiment replace them."""
        return len(self.subjects) <= SHOWN_MAX

    @property
    def any_graded(self) -> bool:
        """Whether any episode is graded."""
        return any(agent.whole.counts.graded for agent in self.subjects)

    def groups(self, grouping: str) -> list[str]:
        """Return the group names of ``by_fault`` or ``by_domain`` over all agents."""
        names = [name for agent in self.subjects for name in getattr(agent, grouping)]
        return list(dict.fromkeys(names))


Prove = Callable[[Suite], Callable[[str], bool | None]]
"""Returns whether tasks of a suite are known to be solvable, by task ID."""


def _nothing_proven(suite: Suite) -> Callable[[str], bool | None]:
    return lambda task_id: None


def compute_findings(
    runs: Sequence[Run],
    subjects: Sequence[Subject],
    baseline: Subject | None,
    prove: Prove = _nothing_proven,
) -> Findings:
    """Compute the findings.

    Args:
        runs: all runs.
        subjects: the agents of the runs.
        baseline: the agent that the others are compared with; None for no comparisons of pairs.
        prove: proves that a task is solvable, if the task does not say so itself.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    versus = tuple(
        Versus(baseline, subject, compare(baseline.results, subject.results))
        for subject in subjects
        if baseline is not None and subject is not baseline
    )
    return Findings(tuple(runs), tuple(_of_subject(subject, prove) for subject in subjects), versus)


def _of_subject(subject: Subject, prove: Prove) -> SubjectFindings:
    results, is_solvable = subject.results, prove(subject.run.suite)
    entries: list[Spent] = []
    attributions: dict[str, Attribution] = {}
    for result, trace in read_traces(subject.run.folder, results):
        entries.extend(spent(result, trace))
        attribution = attribute(result, trace.evidence, is_solvable)
        if attribution is not None:
            attributions[str(result.row.name)] = attribution
    return SubjectFindings(
        subject=subject,
        whole=_of_group(results),
        by_fault={name: _of_group(group) for name, group in by_family(results).items()},
        by_domain={name: _of_group(group) for name, group in by_domain(results).items()},
        curve=_curve(results),
        trials=trial_rates(results),
        spreads=spreads(entries),
        attributions=attributions,
    )


def _of_group(results: Results) -> GroupFindings:
    return GroupFindings(count(results), estimates(results))


def _curve(results: Results) -> tuple[float, ...]:
    graded_results = graded(results)
    if not graded_results:
        return ()
    ks = range(BUDGETS[-1] + 1)
    return tuple(
        sum(solved_within(k, result) or 0.0 for result in graded_results) / len(graded_results)
        for k in ks
    )
