"""Agents that did not keep to the contract, one line each: what, how often, and where to look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from runner.core.outcome import AgentCrashed, TimedOut
from runner.records.row import EpisodeRow


def misbehaviour(rows: Sequence[EpisodeRow], output_limit_bytes: int) -> Iterator[str]:
    """Yield one line per agent and kind of misbehaviour.

    Args:
        rows: of finished episodes.
        output_limit_bytes: how much of each stream of a box is kept.
    """
    by_agent: dict[str, list[EpisodeRow]] = defaultdict(list)
    for row in rows:
        by_agent[row.name.agent].append(row)
    for agent, own in by_agent.items():
        kinds = Counter(kind for row in own for kind in _kinds(row, output_limit_bytes))
        for kind, count in sorted(kinds.items()):
            yield f"agent {agent}: {kind} in {count} of {len(own)} episodes"


def _kinds(row: EpisodeRow, output_limit_bytes: int) -> Iterator[str]:
    match row.outcome:
        case AgentCrashed(detail):
            yield f"crashed ({detail})"
        case TimedOut(wall_ms):
            yield f"not done within its {wall_ms / 1000:g} s"
    for stream, size in (("standard output", row.stdout_bytes), ("standard error", row.stderr_bytes)):
        if size > output_limit_bytes:
            yield f"{stream} longer than the {output_limit_bytes} bytes that are kept"
    if row.refusals:
        yield "messages that the wall refused"
