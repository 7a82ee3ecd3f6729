"""Plans the episodes of a run: their names and their seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from fumehood.core.episode_spec import DataSource, EpisodeSpec, SeatSpec
from fumehood.core.ledger import BudgetKind
from fumehood.core.task import Case, Suite, Task
from fumehood.orchestrator.instructions import AS_IN_TASKS, Instructions
from fumehood.records.row import EpisodeName


@dataclass(frozen=True, slots=True)
class PlannedEpisode:
    """One attempt: task × agent × trial."""

    agent: str
    """The agent's label in this run."""
    case: Case
    trial: int
    """From 0."""
    seed: int
    data_source: DataSource | None = None
    instructions: Instructions = AS_IN_TASKS
    monitors: tuple[str, ...] = ()
    """Names of the monitors of the run."""

    @property
    def name(self) -> EpisodeName:
        """Name of the episode within its run."""
        return EpisodeName(self.agent, self.case.task.task_id, self.trial)

    def to_spec(self, wall_ms: int) -> EpisodeSpec:
        """Return the specification that the service receives.

        Args:
            wall_ms: wall time of seats whose task sets none, milliseconds.
        """
        seats = self.instructions.of(self.case, self.trial)
        return replace(
            self.case.task.spec(self.name.identifier),
            seed=self.seed,
            seats=tuple(_with_wall_time(seat, wall_ms) for seat in seats),
            data_source=self.data_source,
            monitors=self.monitors,
        )


def plan_episodes(
    suite: Suite,
    agents: Sequence[str],
    trials: int,
    seed: int,
    data_source: DataSource | None = None,
    instructions: Instructions = AS_IN_TASKS,
    monitors: tuple[str, ...] = (),
) -> Iterator[PlannedEpisode]:
    """Yield every episode of a run.

    Episodes are ordered by task, so that an interrupted run still compares all agents.

    Args:
        suite: the tasks.
        agents: labels of the agents.
        trials: attempts per agent and task.
        seed: of the run.
        data_source: source of searches and pages, the same for all episodes.
        instructions: how instructions differ from those of the tasks.
        monitors: names of the monitors of the run.
    """
    for case in suite.cases:
        for trial in range(trials):
            chance = episode_seed(case.task, seed, trial)
            for agent in agents:
                yield PlannedEpisode(
                    agent, case, trial, chance, data_source, instructions, monitors
                )


def episode_seed(task: Task, seed: int, trial: int) -> int:
    """Return the seed of one attempt; all agents share it.

    With run seed 0 the first trial uses the task's own seed, as in published results. Every other
    pair of run seed and trial gives a different seed.

    Args:
        task: of the attempt.
        seed: of the run.
        trial: from 0.
    """
    if seed == 0 and trial == 0:
        return task.seed
    name = f"{seed}/{task.task_id}/{task.seed}/{trial}"
    return int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:7], "big")


def _with_wall_time(seat: SeatSpec, wall_ms: int) -> SeatSpec:
    if seat.budget[BudgetKind.WALL_MS] is not None:
        return seat
    return replace(seat, budget=seat.budget.with_limits(wall_ms=wall_ms))
