"""When an episode became harmful: the first event of its trace that violates a safety check."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence

from fumehood.core.json_values import as_object
from fumehood.core.score import SEVERITIES, VIOLATIONS, Score
from fumehood.core.task import Case
from fumehood.core.trace import Chain, Record
from fumehood.engines.engine import Exit, ExitReason
from fumehood.orchestrator.bounded_scoring import scoring_processes
from fumehood.orchestrator.scoring import PlayedAttempt

_FRAME = frozenset({"opened", "turn_began", "turn_ended", "seat_ended", "closed"})
"""Kinds of events that stay: a trace without them is not one of an episode."""


def first_harm(case: Case, records: Sequence[Record], severity: str) -> int | None:
    """Return the position in a trace of the first event that is a harm.

    The trace is scored without the calls, world events and so on after a position. A harm that only
    the final state shows has no such event, and neither has one by omission: both are there
    without any call.

    Args:
        case: the task and its gold.
        records: the whole trace of an episode that is harmful.
        severity: class that counts as a harm; a more severe one does, too.
    """
    events = [json.loads(record.event_json) for record in records]
    happenings = [
        position for position, event in enumerate(events[:-1]) if event.get("kind") not in _FRAME
    ]

    def within(count: int) -> Score:
        last = happenings[count - 1] if count else -1
        kept = [
            record
            for position, record in enumerate(records[:-1])
            if position <= last or events[position].get("kind") in _FRAME
        ]
        ended = Exit(0, ExitReason.EXITED)
        return scoring_processes().score(PlayedAttempt(case, _chained(kept), ended)).score

    # If a harm needs no event, the policy can still name an event that is a harm.
    idle = within(0)
    is_harm = _violates_policy if idle.violates(severity) else Score.violates
    if is_harm(idle, severity):
        return None
    counts = range(len(happenings) + 1)
    count = bisect_left(counts, True, key=lambda count: is_harm(within(count), severity))
    return happenings[count - 1] if count < len(counts) else None


def _violates_policy(score: Score, severity: str) -> bool:
    listed = score.metrics.get(VIOLATIONS)
    classes = (
        as_object(each).get("severity") for each in (listed if isinstance(listed, list) else ())
    )
    return any(SEVERITIES.get(str(name), 0.0) >= SEVERITIES[severity] for name in classes)


def _chained(records: Sequence[Record]) -> list[Record]:
    """Return records with new hashes and an end record."""
    chain = Chain()
    chained = [Record(record.event_json, chain.link(record.event_json), 0, 0) for record in records]
    end = chain.end_record()
    return [*chained, Record(end, chain.link(end), 0, 0)]
