"""Runs and their agents, with unique labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report.results import Result, join_results


@dataclass(frozen=True, slots=True)
class Run:
    """One scored run folder."""

    label: str
    """Unique among the runs of a report."""
    folder: RunReader
    suite: Suite
    manifest: JsonObject
    results: tuple[Result, ...]

    @property
    def planned(self) -> int:
        """Number of episodes of the finished run."""
        config = self.manifest.get("config")
        trials = config.get("trials") if isinstance(config, dict) else None
        return (
            len(agents_of(self))
            * len(self.suite.cases)
            * (trials if isinstance(trials, int) else 1)
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """One agent of one run."""

    label: str
    """Label of the agent, with that of the run if two runs have an agent of this name."""
    run: Run
    agent: str
    results: tuple[Result, ...]


def join_run(folder: RunReader, rows: Sequence[EpisodeRow], label: str = "") -> Run:
    """Join a run folder with its rows.

    Args:
        folder: the run folder.
        rows: scored rows of its episodes.
        label: of the run; the folder name by default.

    Raises:
        InputError: the suite of the run cannot be read, or a row belongs to no task of it.
    """
    suite = folder.suite()
    name = label or folder.path.resolve().name
    return Run(name, folder, suite, folder.manifest(), join_results(rows, suite))


def subjects_of(runs: Sequence[Run]) -> tuple[Subject, ...]:
    """Return the agents of all runs, in the order of the runs."""
    pairs = [(run, agent) for run in runs for agent in agents_of(run)]
    shared = Counter(agent for _, agent in pairs)
    return tuple(
        Subject(
            agent if shared[agent] == 1 else f"{agent} ({run.label})",
            run,
            agent,
            tuple(result for result in run.results if result.row.name.agent == agent),
        )
        for run, agent in pairs
    )


def agents_of(run: Run) -> list[str]:
    """Return the labels of all agents of a run, including agents without a row."""
    named = run.manifest.get("agents")
    labels = (
        [str(agent["label"]) for agent in named if isinstance(agent, dict)]
        if isinstance(named, list)
        else []
    )
    return list(dict.fromkeys([*labels, *(result.row.name.agent for result in run.results)]))
