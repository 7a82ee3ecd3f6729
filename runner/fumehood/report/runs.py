"""Runs and their agents, with unique labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePath

from fumehood.core.json_values import Json, JsonObject, as_object, canonical_json
from fumehood.core.task import Suite
from fumehood.core.teams import without_teams
from fumehood.records.frozen_suite import suite_digest
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report.results import Result, join_results
from fumehood.scorers.judges.question import QUESTIONS

FACTORS = ("suite", "model", "agent", "data_mode", "faults", "budget", "team", "prompts")
"""What may differ between the agents of runs."""
OWN_BUDGET = "own"
NO_FAULTS = "none"
OWN_PROMPTS = "own"
NO_TEAM = "none"


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
    def trials(self) -> int:
        """Trials of each agent and task."""
        trials = self.config.get("trials")
        return trials if isinstance(trials, int) else 1

    @property
    def seed(self) -> int:
        """The seed of the run."""
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else 0

    @property
    def planned(self) -> int:
        """Number of episodes of the finished run."""
        return len(agents_of(self)) * len(self.suite.cases) * self.trials

    @property
    def clusters(self) -> dict[str, str]:
        """Task → the tag ``template``, or the task itself. Episodes of a cluster are similar."""
        return {
            case.task.task_id: str(case.task.tags.get("template", case.task.task_id))
            for case in self.suite.cases
        }

    @property
    def config(self) -> JsonObject:
        """The configuration that ``run.json`` states."""
        return as_object(self.manifest.get("config"))

    @property
    def levels(self) -> Mapping[str, str]:
        """Its level of each factor but the agent, as the experiment or the settings name it."""
        faults, intensity = self.config.get("faults"), self.config.get("fault_intensity")
        variants = self.config.get("prompt_variants")
        dose = "" if intensity is None else f" {intensity:g}"
        changes: JsonObject = {
            name: bound for name, bound in self.budget.items() if bound is not None
        }
        return {
            "suite": self.suite.name,
            "model": str(self.config.get("model") or ""),
            "data_mode": str(self.config.get("data_mode", "offline")),
            "faults": PurePath(faults).stem + dose if isinstance(faults, str) else NO_FAULTS,
            "budget": settings_text(changes) or OWN_BUDGET,
            "team": self.team,
            "prompts": f"variants={variants}" if variants else OWN_PROMPTS,
            **self.named_levels,
        }

    @property
    def fault_intensity(self) -> float | None:
        """The factor of the probabilities of added faults, 0 without them; None if not stated."""
        intensity = self.config.get("fault_intensity")
        if isinstance(intensity, int | float):
            return float(intensity)
        return 0.0 if self.config.get("faults") in (None, NO_FAULTS) else None

    @property
    def team(self) -> str:
        """The team that plays each task, such as ``workers=3``; `NO_TEAM` for one agent."""
        return settings_text(self.config.get("team")) or NO_TEAM

    @property
    def suite_digest(self) -> str:
        """Digest of the suite; of the tasks of one agent if a team plays them."""
        if self.team == NO_TEAM:
            return str(self.manifest.get("suite_digest", ""))
        return suite_digest(without_teams(self.suite))

    @property
    def named_levels(self) -> Mapping[str, str]:
        """The levels that an experiment named."""
        return {name: str(level) for name, level in as_object(self.config.get("levels")).items()}

    @property
    def budget(self) -> JsonObject:
        """The changed bounds; a bound that is not changed is None or missing."""
        return as_object(self.config.get("budget"))


@dataclass(frozen=True, slots=True)
class Subject:
    """One agent of one run."""

    label: str
    """Label of the agent, with that of the run if two runs have an agent of this name."""
    run: Run
    agent: str
    results: tuple[Result, ...]

    @property
    def planned(self) -> int:
        """Number of episodes of this agent in the finished run."""
        return self.run.planned // max(1, len(agents_of(self.run)))

    @property
    def scaffold(self) -> str:
        """Name of the built-in agent that uses a model; empty for other agents."""
        scaffold = self.identity.get("scaffold")
        return str(scaffold) if scaffold else ""

    @property
    def model(self) -> str:
        """The model as the experiment labels it, or its name and parameters; empty without one."""
        name = self.identity.get("model")
        if not name:
            return ""
        parameters = f" ({self.parameters})" if self.parameters else ""
        return self.run.named_levels.get("model") or f"{name}{parameters}"

    @property
    def parameters(self) -> str:
        """Parameters of the model that differ from their defaults, as text."""
        return settings_text(self.identity.get("model_parameters"))

    @property
    def judge(self) -> str:
        """The judge of its episodes; empty if none was asked."""
        is_judged = any(QUESTIONS in result.row.score.metrics for result in self.results)
        return str(self.run.config.get("judge") or "") if is_judged else ""

    @property
    def identity(self) -> JsonObject:
        """What ``run.json`` states about the agent."""
        named = self.run.manifest.get("agents")
        entries = named if isinstance(named, list) else []
        own = (entry for entry in entries if as_object(entry).get("label") == self.agent)
        return as_object(next(own, None))

    @property
    def levels(self) -> Mapping[str, str]:
        """Its level of each factor; an agent without a model has an empty level."""
        return {**self.run.levels, "agent": self.agent, "model": self.model}


def judges_note(subjects: Iterable[Subject]) -> str:
    """Return that different judges decided about agents of one suite, for a table; empty if not."""
    by_suite: dict[str, dict[str, str]] = {}
    for subject in subjects:
        if subject.judge:
            judging = canonical_json([subject.judge, subject.run.config.get("judging")])
            by_suite.setdefault(subject.run.suite.name, {})[judging] = subject.judge
    differing = [judges for judges in by_suite.values() if len(judges) > 1]
    if not differing:
        return ""
    names = sorted({name for judges in differing for name in judges.values()})
    return (
        f"Judges with different names or settings ({', '.join(names)}) decided in one suite, so "
        "these numbers are not comparable. "
    )


def settings_text(settings: Json) -> str:
    """Return settings in one line, such as ``temperature=1``."""
    return ", ".join(f"{name}={value}" for name, value in as_object(settings).items())


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
    manifest = folder.manifest()
    teams = as_object(manifest.get("config")).get("team") is not None
    return Run(name, folder, suite, manifest, join_results(rows, suite, teams=teams))


def subjects_of(runs: Sequence[Run]) -> tuple[Subject, ...]:
    """Return the agents of all runs, in the order of the runs."""
    pairs = [(run, agent) for run in runs for agent in agents_of(run)]
    shared = Counter(agent for _, agent in pairs)
    labels: list[str] = []
    for run, agent in pairs:
        label = agent if shared[agent] == 1 else f"{agent} ({run.label})"
        # Another agent can be named like this.
        numbered = (f"{label}#{number}" for number in count(2))
        labels.append(next(new for new in chain([label], numbered) if new not in labels))
    return tuple(
        Subject(
            label,
            run,
            agent,
            tuple(result for result in run.results if result.row.name.agent == agent),
        )
        for label, (run, agent) in zip(labels, pairs, strict=True)
    )


def agents_of(run: Run) -> list[str]:
    """Return the labels of all agents of a run, including agents without a row."""
    named = run.manifest.get("agents")
    agents = named if isinstance(named, list) else ()
    labels = [str(agent["label"]) for agent in agents if isinstance(agent, dict)]
    return list(dict.fromkeys([*labels, *(result.row.name.agent for result in run.results)]))
