"""Joins rows with the facts of their tasks, which statistics group by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, digest_json
from fumehood.core.task import Suite, Task
from fumehood.core.teams import without_team
from fumehood.records.row import EpisodeRow

RISK = "risk"
"""Tag of a task with its risk class, or a list of them."""
OTHER_RISK = "other"
"""Risk class of the tasks without the tag."""
CLEAN = "clean"
"""Group of the tasks without planned faults."""
NUMBER_MAX = 1e100
"""Maximum absolute value of a metric, so that sums of metrics and of their squares are finite."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The facts of a task that do not depend on an agent."""

    task_id: str
    domain: str
    families: tuple[str, ...]
    """Families of the planned faults, each once, in the order of the plan."""
    solvable: bool | None
    """None if it is not proven."""
    digest: str
    """Digest of world, state, faults, instructions and budgets. Equal tasks have equal digests.
    The digests of a task that a team plays are those of the task of one agent."""
    core_digest: str
    """Digest without faults and budgets, which an experiment varies."""
    counterparts: tuple[str, ...] = ()
    """Seats that are not the agent's, such as that of a simulated user."""
    risks: tuple[str, ...] = ()
    """Risk classes: the tag :data:`RISK`, a text or a list of texts."""


@dataclass(frozen=True, slots=True)
class Result:
    """One finished episode."""

    row: EpisodeRow
    task: TaskFacts

    @property
    def success(self) -> bool | None:
        """Whether the episode succeeded; None if it is ungraded."""
        return self.row.score.success

    def metric(self, name: str) -> Json:
        """Return a metric of the scorer; None if it does not exist."""
        return self.row.score.metrics.get(name)

    def number(self, name: str) -> float | None:
        """Return a metric of the scorer as a number; true is 1. Other types, and numbers that are
        not finite or are above :data:`NUMBER_MAX`, are None."""
        return as_number(self.row.score.metrics.get(name))


Results = Sequence[Result]


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of episodes that are part of a mean, or missing from it."""

    episodes: int
    graded: int
    ungraded: int
    """Ungraded without an infrastructure failure."""
    infra: int
    """Infrastructure failures."""
    repeated: int = 0
    """Attempts that ended as ``infra`` and were repeated, so that another row counts."""
    tasks: int = 0
    """Different tasks of the episodes."""


def as_number(value: Json) -> float | None:
    """Return a value as a number, as :meth:`Result.number` does."""
    # Infinity and NaN fail the comparison; an integer can be too large for a float.
    return float(value) if isinstance(value, int | float) and abs(value) <= NUMBER_MAX else None


def join_results(
    rows: Iterable[EpisodeRow], suite: Suite, *, teams: bool = False
) -> tuple[Result, ...]:
    """Join rows with the facts of their tasks.

    Args:
        rows: of the episodes.
        suite: of the run.
        teams: whether a team plays each task. The digests are then those of the task of one agent.

    Raises:
        InputError: a row belongs to no task of the suite.
    """
    facts = {
        case.task.task_id: _facts(case.task, case.gold.solvable, teams=teams)
        for case in suite.cases
    }
    return tuple(_join(row, facts) for row in rows)


def count(results: Results) -> Counts:
    """Count episodes by whether they are part of a mean."""
    graded = sum(result.success is not None for result in results)
    infra = sum(result.row.is_infra for result in results)
    repeated = sum(result.row.infra_attempts for result in results) - infra
    tasks = len({result.row.name.task for result in results})
    return Counts(len(results), graded, len(results) - graded - infra, infra, repeated, tasks)


def by_family(results: Results) -> dict[str, list[Result]]:
    """Group by fault family. A task with several families is in each of their groups."""
    return _grouped(results, lambda task: task.families or (CLEAN,))


def by_domain(results: Results) -> dict[str, list[Result]]:
    """Group by domain."""
    return _grouped(results, lambda task: (task.domain,))


def by_risk(results: Results) -> dict[str, list[Result]]:
    """Group graded episodes with safety checks by risk class; a task may have several."""
    guarded = [
        result for result in results if result.success is not None and result.row.score.has_safety
    ]
    return _grouped(guarded, lambda task: task.risks or (OTHER_RISK,))


def by_task(results: Results) -> dict[str, list[Result]]:
    """Group by task, in the order in which tasks first appear."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.task.task_id].append(result)
    return groups


def _join(row: EpisodeRow, facts: Mapping[str, TaskFacts]) -> Result:
    if row.name.task not in facts:
        raise InputError(f"{row.name}: the suite of the run has no such task")
    return Result(row, facts[row.name.task])


def _grouped(
    results: Results, groups_of: Callable[[TaskFacts], tuple[str, ...]]
) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        for group in groups_of(result.task):
            groups[group].append(result)
    return _in_order(groups)


def _in_order(groups: Mapping[str, list[Result]]) -> dict[str, list[Result]]:
    """Sort groups by name, clean tasks first, so that all runs have the same order."""
    return {name: groups[name] for name in sorted(groups, key=lambda name: (name != CLEAN, name))}


def _facts(task: Task, solvable: bool | None, *, teams: bool) -> TaskFacts:
    families = tuple(dict.fromkeys(rule.family for rule in task.fault_plan))
    seats = (without_team(task) if teams else task).seats
    core = digest_json(
        {
            "world": task.world,
            "harness_mode": task.harness_mode,
            "initial_state": task.initial_state,
            "seats": [[seat.name, seat.instruction] for seat in seats],
        }
    )
    varied: JsonObject = {
        "fault_plan": [rule.to_json() for rule in task.fault_plan],
        "budgets": [str(seat.budget) for seat in seats],
    }
    digest = digest_json({"core": core, **varied})
    counterparts = tuple(task.counterparts)
    named = task.tags.get(RISK)
    risks = tuple(
        dict.fromkeys(
            name
            for name in (named if isinstance(named, list) else [named])
            if isinstance(name, str) and name
        )
    )
    return TaskFacts(
        task.task_id, domain_of(task), families, solvable, digest, core, counterparts, risks
    )


DOMAIN_TAGS = ("domain", "risk", "suite", "form", "category", "type", "issue")
"""Tags that name the domain of a task; the first one that a task has counts."""


def domain_of(task: Task) -> str:
    """Return the domain of a task: a tag of :data:`DOMAIN_TAGS`, or else its world."""
    named = (task.tags.get(tag) for tag in DOMAIN_TAGS)
    return next((name for name in named if isinstance(name, str) and name), task.world)
