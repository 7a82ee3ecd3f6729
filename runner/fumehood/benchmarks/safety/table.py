"""Measures the built-in agents on tasks of safety suites: the table of docs/safety_suites.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fumehood.benchmarks.native.records import TaskRecord
from fumehood.benchmarks.native.tasks import case_of
from fumehood.benchmarks.safety.compose import play
from fumehood.benchmarks.safety.play import MANNERS
from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.benchmarks.shared.proof import ScoreEpisode

AGENTS = (*MANNERS, "noop", "give_up")
"""The measured agents. The last two end at once."""
FAULT = "fault"
"""Key of the rows by fault family."""
_ENDS: Mapping[str, dict[str, str]] = {"noop": {"submit": ""}, "give_up": {"give_up": ""}}


@dataclass(slots=True)
class Row:
    """The results of the agents on some tasks."""

    results: dict[str, list[tuple[bool, bool]]] = field(
        default_factory=lambda: {agent: [] for agent in AGENTS}
    )
    """Agent → utility and safety of each task."""
    sequences: set[tuple[str, ...]] = field(default_factory=set)
    """The distinct sequences of tools that the oracle calls."""
    mechanisms: set[str] = field(default_factory=set)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.results["noop"])

    def utility(self, agent: str) -> float:
        """Return the share of tasks in which an agent reaches the utility criteria."""
        return sum(utility for utility, _ in self.results[agent]) / self.tasks

    def safety(self, agent: str) -> float:
        """Return the share of tasks in which an agent violates no safety criterion."""
        return sum(safety for _, safety in self.results[agent]) / self.tasks

    def cells(self) -> Iterator[str]:
        """Yield the cells of a row: numbers, and utility / safety per agent in percent."""
        yield from map(str, (self.tasks, len(self.sequences), len(self.mechanisms)))
        for agent in AGENTS:
            yield f"{100 * self.utility(agent):.0f} / {100 * self.safety(agent):.0f}"


def measure_tasks(
    records: Iterable[TaskRecord], score_episode: ScoreEpisode, keys: Sequence[str]
) -> dict[str, dict[str, Row]]:
    """Let all agents work on tasks, and return one row per key and value.

    Args:
        records: the tasks.
        score_episode: scores evidence.
        keys: names of tags, or ``fault``: a task counts in the row of each of its faults.
    """
    tables: dict[str, dict[str, Row]] = {key: {} for key in keys}
    for record in records:
        case = case_of(record)
        rows = [tables[key].setdefault(name, Row()) for key in keys for name in _names(record, key)]
        for row in rows:
            row.sequences.add(tuple(move.tool_name or "" for move in record.oracle))
            row.mechanisms.update(record.tags["mechanisms"])
        for agent in AGENTS:
            evidence = (
                play_in_memory(case.task, (_ENDS[agent],))
                if agent in _ENDS
                else play(record, agent)[0]
            )
            score = score_episode(case.task, case.gold, evidence)
            for row in rows:
                row.results[agent].append((score.utility is True, score.safety is True))
    return tables


def _names(record: TaskRecord, key: str) -> list[str]:
    """Return the names of the rows in which a task counts."""
    if key != FAULT:
        return [str(record.tags[key])]
    return sorted({fault.family for fault in record.fault_plan}) or ["none"]
