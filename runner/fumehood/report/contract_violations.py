"""Agents that did not keep to the contract: what, how often, and where to look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fumehood.core.outcome import AgentCrashed, TimedOut
from fumehood.records.episode_name import EpisodeName
from fumehood.records.row import EpisodeRow


@dataclass(frozen=True, slots=True)
class Complaint:
    """One kind of misbehaviour of one agent."""

    agent: str
    kind: str
    """Such as ``crashed (exit status 1)``."""
    count: int
    """Episodes in which it happened."""
    episodes: int
    """Of the agent, in all."""
    example: EpisodeName
    """The first of them."""

    def __str__(self) -> str:
        return f"agent {self.agent}: {self.kind} in {self.count} of {self.episodes} episodes"


def complaints(rows: Sequence[EpisodeRow], output_limit_bytes: int) -> Iterator[Complaint]:
    """Yield one complaint per agent and kind of misbehaviour.

    Args:
        rows: of finished episodes.
        output_limit_bytes: how much of each stream of a box is kept.
    """
    episodes: dict[str, int] = defaultdict(int)
    found: dict[tuple[str, str], list[EpisodeName]] = defaultdict(list)
    for row in rows:
        episodes[row.name.agent] += 1
        for kind in _kinds(row, output_limit_bytes):
            found[row.name.agent, kind].append(row.name)
    for (agent, kind), names in found.items():
        yield Complaint(agent, kind, len(names), episodes[agent], names[0])


def _kinds(row: EpisodeRow, output_limit_bytes: int) -> Iterator[str]:
    match row.outcome:
        case AgentCrashed(detail):
            yield f"crashed ({detail})"
        case TimedOut(wall_ms):
            yield f"not done within its {wall_ms / 1000:g} s"
    for stream, size in (
        ("standard output", row.stdout_bytes),
        ("standard error", row.stderr_bytes),
    ):
        if size > output_limit_bytes:
            yield f"{stream} longer than the {output_limit_bytes} bytes that are kept"
    if row.refusals:
        yield "sent messages that the wall refused"
