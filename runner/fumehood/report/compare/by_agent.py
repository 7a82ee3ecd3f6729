"""Compares agents: two runs, two agents of one run, or all agents of a run against one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fumehood.core.errors import InputError
from fumehood.report.compare.dimension import (
    Compared,
    CompareOptions,
    Target,
    agents_of_targets,
    check_comparable,
)
from fumehood.report.findings import Versus
from fumehood.report.runs import Subject
from fumehood.report.sections.comparisons import (
    difference_table,
    flip_table,
    flipped_table,
    versus_json,
    versus_table,
)
from fumehood.report.sections.metrics import shared_table
from fumehood.report.statistics.pairs import compare
from fumehood.report.text_table import TextTable

FLIPS_MAX = 40
"""Flipped tasks listed on a terminal."""

Pair = tuple[Subject, Subject]


class ByAgent:
    """Compares the success of agents on the tasks that both attempted."""

    def arms(
        self, settings: Mapping[str, Any], options: CompareOptions
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return one run of all agents."""
        if len(options.agents) < 2:
            raise InputError("name at least two agents to compare: --agent A --agent B")
        return {"agents": {"agents": list(options.agents)}}

    def compare(self, targets: Sequence[Target], options: CompareOptions) -> Compared:
        """Compare agents of one or two runs."""
        if len(targets) > 2:
            raise InputError(f"compare one run or two, not {len(targets)}")
        sides = agents_of_targets(targets)
        versus = [
            Versus(first, second, compare(first.results, second.results))
            for first, second in _pairs(sides, options.against)
        ]
        check_comparable(versus)
        subjects = {
            id(subject): subject for pair in versus for subject in (pair.first, pair.second)
        }
        left_out = _only_in_one_run(sides, subjects.values())
        tables = [table for pair in versus for table in _tables(pair)]
        if left_out:
            parts = (f"{', '.join(names)} (only in {run})" for run, names in left_out.items())
            tables[0] = replace(
                tables[0], note=f"Not compared: {'; '.join(parts)}. {tables[0].note}"
            )
        return Compared(
            tables,
            {
                "comparisons": [versus_json(pair) for pair in versus],
                "only_in": {run: [*names] for run, names in left_out.items()},
            },
            list(subjects.values()),
        )


def _tables(versus: Versus) -> list[TextTable]:
    return [
        versus_table([versus]),
        difference_table(versus),
        shared_table([versus.first, versus.second]),
        flip_table(versus),
        flipped_table(versus, FLIPS_MAX),
    ]


def _only_in_one_run(
    sides: Sequence[Sequence[Subject]], compared: Iterable[Subject]
) -> dict[str, list[str]]:
    """Return the agents of two runs that no comparison has, by run folder."""
    if len(sides) < 2:
        return {}
    known = {subject.label for subject in compared}
    left_out: dict[str, list[str]] = {}
    for subject in (subject for side in sides for subject in side if subject.label not in known):
        left_out.setdefault(str(subject.run.folder.path), []).append(subject.agent)
    return left_out


def _pairs(sides: Sequence[Sequence[Subject]], against: str | None) -> list[Pair]:
    """Return the pairs to compare.

    One run: every other agent against one of them. Two runs: one agent with one agent, or each
    agent with the agent of the same name.
    """
    if len(sides) == 1:
        (agents,) = sides
        return _against(agents, against)
    first, second = sides
    if len(first) == len(second) == 1:
        pairs = [(first[0], second[0])]
    else:
        by_name = {subject.agent: subject for subject in second}
        pairs = [(subject, by_name[subject.agent]) for subject in first if subject.agent in by_name]
    pairs = [(first, second) for first, second in pairs if first is not second]
    if not pairs:
        names = [", ".join(subject.agent for subject in side) for side in sides]
        raise InputError(
            f"name the agents to compare, as DIR:AGENT; the first run has {names[0]}, "
            f"the second {names[1]}"
        )
    return pairs


def _against(agents: Sequence[Subject], against: str | None) -> list[Pair]:
    baseline = next((agent for agent in agents if against in (None, agent.agent)), None)
    others = [agent for agent in agents if agent is not baseline]
    if baseline is None or not others:
        known = ", ".join(agent.agent for agent in agents)
        raise InputError(f"two agents are needed, one of them --against; the run has: {known}")
    return [(baseline, other) for other in others]
