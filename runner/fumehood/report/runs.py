"""The runs that are looked at, and the agents in them under names that no two share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.report.results import Result, join_results


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder, judged."""

    label: str
    """Unique among the runs that are looked at."""
    folder: RunFolder
    suite: Suite
    manifest: JsonObject
    results: tuple[Result, ...]

    @property
    def planned(self) -> int:
        """How many episodes there are when the run is done."""
        config = self.manifest.get("config")
        trials = config.get("trials") if isinstance(config, dict) else None
        return (
            len(agents_of(self))
            * len(self.suite.cases)
            * (trials if isinstance(trials, int) else 1)
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """One agent of one run: what is compared with others."""

    label: str
    """Unique among the subjects: the agent's, with its run's where two runs have such an agent."""
    run: Run
    agent: str
    results: tuple[Result, ...]


def join_run(folder: RunFolder, rows: Sequence[EpisodeRow], label: str = "") -> Run:
    """Return a run with what it says.

    Args:
        folder: of the run.
        rows: of its episodes, as they are to be taken.
        label: its name; the folder's own where none is given.

    Raises:
        InputError: the folder's suite cannot be read, or a row is of none of its tasks.
    """
    suite = folder.suite()
    name = label or folder.path.resolve().name
    return Run(name, folder, suite, folder.manifest(), join_results(rows, suite))


def subjects_of(runs: Sequence[Run]) -> tuple[Subject, ...]:
    """Return the agents of all runs, in their order."""
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
    """Return the labels of a run's agents, in the order in which they were named; those without a row too."""
    named = run.manifest.get("agents")
    labels = (
        [str(agent["label"]) for agent in named if isinstance(agent, dict)]
        if isinstance(named, list)
        else []
    )
    return list(dict.fromkeys([*labels, *(result.row.name.agent for result in run.results)]))
