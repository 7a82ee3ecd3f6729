"""The effect of the environment, agent by agent, and that of the agent, environment by environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fumehood.core.errors import InputError
from fumehood.core.evidence import Exchange
from fumehood.report.environments.divergence import Divergence, Way, first_divergence
from fumehood.report.environments.pages import PageCounts, changed_pages, count_pages
from fumehood.report.findings import Versus
from fumehood.report.runs import Run, Subject, subjects_of
from fumehood.report.statistics.pairs import compare
from fumehood.report.traces import ReadTrace, read_traces

Trial = tuple[str, int]
"""A task and a trial: what pairs episodes."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the calls of one tool, milliseconds, as the service took them."""

    calls: int
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Side:
    """One environment of one agent."""

    environment: str
    pages: PageCounts
    latency: Mapping[str, Latency]
    """By tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEffect:
    """One agent, in one environment and in the other."""

    versus: Versus
    sides: tuple[Side, Side]
    divergences: Mapping[Trial, Divergence | None]
    """Of every pair of episodes with traces; None where both went the same way."""
    shared_pages: int
    """Pages read in both environments of one pair."""
    changed_pages: int
    """Those of them whose text was not the same."""

    def parted(self, way: Way) -> int:
        """Count the pairs whose first difference was of this kind."""
        return sum(found is not None and found.way is way for found in self.divergences.values())


@dataclass(frozen=True, slots=True)
class Effects:
    """Both effects that a score mixes."""

    of_environment: tuple[EnvironmentEffect, ...]
    """One an agent: the second environment against the first."""
    of_agent: tuple[tuple[str, Versus], ...]
    """By environment: every later agent against every earlier one."""


def effects(first: Run, second: Run) -> Effects:
    """Compare two runs of the same agents on the same tasks in different environments.

    Raises:
        InputError: no agent is in both, both are of one environment, or a trace cannot be read.
    """
    environments = environment_of(first), environment_of(second)
    if environments[0] == environments[1]:
        raise InputError(f"both runs are {environments[0]}: there is no environment to compare")
    ours, theirs = ({one.agent: one for one in subjects_of([run])} for run in (first, second))
    if not ours.keys() & theirs.keys():
        raise InputError(f"no agent is in both: {', '.join(ours)}; {', '.join(theirs)}")
    own = tuple(_effect(ours[name], theirs[name]) for name in ours if name in theirs)
    between = tuple(
        (environment, Versus(one, other, compare(one.results, other.results)))
        for environment, subjects in zip(environments, (ours, theirs), strict=True)
        for one, other in combinations(subjects.values(), 2)
    )
    return Effects(own, between)


def environment_of(run: Run) -> str:
    """Return the environment of a run, as its configuration says."""
    config = run.manifest.get("config")
    return str(config.get("data_mode", "offline")) if isinstance(config, dict) else "offline"


def _effect(ours: Subject, theirs: Subject) -> EnvironmentEffect:
    read = [_traces(subject) for subject in (ours, theirs)]
    calls = [{trial: _calls(trace) for trial, trace in traces.items()} for traces in read]
    both = [trial for trial in calls[0] if trial in calls[1]]
    shared = [changed_pages(calls[0][trial], calls[1][trial]) for trial in both]
    return EnvironmentEffect(
        versus=Versus(ours, theirs, compare(ours.results, theirs.results)),
        sides=(_side(ours, read[0]), _side(theirs, read[1])),
        divergences={trial: first_divergence(calls[0][trial], calls[1][trial]) for trial in both},
        shared_pages=sum(pages for pages, _ in shared),
        changed_pages=sum(changed for _, changed in shared),
    )


def _traces(subject: Subject) -> dict[Trial, ReadTrace]:
    found = read_traces(subject.run.folder, subject.results)
    return {
        (result.row.name.task, result.row.name.trial): trace
        for result, trace in found
        if trace.evidence is not None
    }


def _calls(trace: ReadTrace) -> Sequence[Exchange]:
    return trace.evidence.exchanges if trace.evidence else ()


def _side(subject: Subject, traces: Mapping[Trial, ReadTrace]) -> Side:
    times_ms: dict[str, list[float]] = defaultdict(list)
    for trace in traces.values():
        for stamped in trace.events:
            if stamped.event["kind"] == "call":
                times_ms[str(stamped.event["tool"])].append(stamped.duration_us / 1000)
    pages = count_pages(call for trace in traces.values() for call in _calls(trace))
    return Side(
        environment_of(subject.run),
        pages,
        {tool: _latency(times_ms[tool]) for tool in sorted(times_ms)},
    )


def _latency(times_ms: Sequence[float]) -> Latency:
    median, p95 = np.quantile(times_ms, [0.5, 0.95])
    return Latency(len(times_ms), float(median), float(p95))
