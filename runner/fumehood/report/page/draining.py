"""What was left of each budget after each call: worked out again by the rules by which calls are charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.evidence import Exchange
from fumehood.core.json_values import json_bytes
from fumehood.report.statistics.resources import took_retry

Left = Mapping[str, int]
"""By name of the budget; one that has no bound is not in it."""


def left_after(seats: Sequence[SeatSpec], calls: Sequence[Exchange]) -> Iterator[Left]:
    """Yield what the calling seat has left after each call, never negative."""
    spent = {seat.name: {"steps": 0, "calls": 0, "retries": 0, "answer_bytes": 0} for seat in seats}
    limits = {
        seat.name: {kind.value: bound for kind, bound in seat.budget.limits().items()}
        for seat in seats
    }
    for call in calls:
        own = spent[call.seat]
        own["steps"] += 1
        own["calls"] += 1
        own["retries"] += took_retry(call)
        own["answer_bytes"] += 0 if call.output is None else json_bytes(call.output)
        yield {name: max(0, limit - own[name]) for name, limit in limits[call.seat].items()}
