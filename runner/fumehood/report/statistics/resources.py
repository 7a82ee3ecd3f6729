"""The resources that episodes used: steps, calls, retries, bytes and time, by seat.

A resource that no episode reports is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fumehood.core.evidence import AnsweredCall
from fumehood.core.json_values import JsonObject, canonical_json
from fumehood.core.tools import FailureKind
from fumehood.report.results import Result
from fumehood.report.traces import ReadTrace, StampedEvent

WHOLE_EPISODE = ""
"""Seat name of the resources of the whole episode."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The resources that one seat or a whole episode used."""

    seat: str
    amounts: Mapping[str, float]
    """By resource name."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of an amount over episodes."""

    mean: float
    median: float
    p95: float
    """95th percentile, linearly interpolated."""
    total: float
    over: int


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that episodes use."""

    name: str
    title: str
    unit: str
    """Empty for counts."""


RESOURCES = (
    Resource("steps", "Steps", ""),
    Resource("calls", "Calls", ""),
    Resource("retries", "Retries", ""),
    Resource("sent_bytes", "Arguments", "bytes"),
    Resource("received_bytes", "Results", "bytes"),
    Resource("service_us", "Time in calls", "µs"),
    Resource("model_calls", "Model requests", ""),
    Resource("model_tokens", "Tokens", ""),
    Resource("input_tokens", "Input tokens", ""),
    Resource("output_tokens", "Output tokens", ""),
    Resource("cached_tokens", "Cached input tokens", ""),
    Resource("reasoning_tokens", "Reasoning tokens", ""),
    Resource("context_peak", "Largest context", "tokens"),
    Resource("model_us", "Time of model requests", "µs"),
    Resource("model_microusd", "Money", "µ$"),
    Resource("elapsed_ms", "Elapsed time", "ms"),
    Resource("lost_model_tokens", "Tokens of lost attempts", ""),
    Resource("lost_model_microusd", "Money of lost attempts", "µ$"),
    Resource("printed_bytes", "Printed", "bytes"),
    Resource("wall_ms", "Wall time", "ms"),
    Resource("attempts", "Attempts", ""),
)


NO_COSTS = dict.fromkeys(("service_us", "model_calls", "model_tokens", "model_microusd"), 0.0)


MODEL_COSTS = {
    resource.name: resource
    for resource in RESOURCES
    if resource.name in {"model_calls", "model_tokens", "model_microusd"}
}
"""Requests to models, tokens and money."""


def model_totals(of_seats: Mapping[tuple[str, str], Spread]) -> dict[str, float]:
    """Return the total of each of `MODEL_COSTS` over all seats, lost attempts included."""
    totals = dict.fromkeys(MODEL_COSTS, 0.0)
    for (_, name), spread in of_seats.items():
        if (kind := name.removeprefix("lost_")) in totals:
            totals[kind] += spread.total
    return totals


def spent(result: Result, trace: ReadTrace) -> list[Spent]:
    """Return the resources of an episode: one entry per seat, and one for the whole episode."""
    row = result.row
    whole = {
        "wall_ms": float(row.wall_ms),
        "printed_bytes": float(row.stdout_bytes + row.stderr_bytes),
        "attempts": float(row.attempts),
        **{f"lost_{kind}": float(units) for kind, units in row.lost_costs.items()},
    }
    return [Spent(WHOLE_EPISODE, whole), *(Spent(*entry) for entry in _by_seat(trace))]


def spreads(entries: Iterable[Spent]) -> dict[tuple[str, str], Spread]:
    """Return the distribution of each resource by seat and resource name."""
    values: dict[tuple[str, str], list[float]] = {}
    for entry in entries:
        for name, amount in entry.amounts.items():
            values.setdefault((entry.seat, name), []).append(amount)
    return {key: _spread(amounts) for key, amounts in values.items()}


def _spread(amounts: Sequence[float]) -> Spread:
    median, p95 = np.quantile(amounts, [0.5, 0.95])
    return Spread(
        float(np.mean(amounts)), float(median), float(p95), float(np.sum(amounts)), len(amounts)
    )


def _by_seat(trace: ReadTrace) -> list[tuple[str, dict[str, float]]]:
    if trace.evidence is None:
        return []
    calls = trace.evidence.calls
    opened = next(
        (stamped.event for stamped in trace.events if stamped.event["kind"] == "opened"), {}
    )
    seats = [str(seat["name"]) for seat in _list(opened.get("seats")) if isinstance(seat, dict)]
    costs_by_seat = times_and_costs(trace)
    return [
        (
            seat,
            {
                **_amounts([call for call in calls if call.seat == seat]),
                **costs_by_seat.get(seat, NO_COSTS),
            },
        )
        for seat in seats
    ]


def times_and_costs(trace: ReadTrace) -> dict[str, dict[str, float]]:
    """Return the call times and model costs by seat."""
    by_seat: dict[str, dict[str, float]] = {}
    began_ms: dict[str, int] = {}
    for stamped in trace.events:
        event = stamped.event
        if "seat" not in event:
            continue
        seat = str(event["seat"])
        seat_costs = by_seat.setdefault(seat, dict(NO_COSTS))
        # Between the first and the last event of the seat.
        first_ms = began_ms.setdefault(seat, stamped.wall_ms)
        seat_costs["elapsed_ms"] = float(stamped.wall_ms - first_ms)
        for name, amount in _event_costs(stamped).items():
            seat_costs[name] = seat_costs.get(name, 0.0) + amount
        read = _reported(event).get("input", 0.0)
        if read:
            seat_costs["context_peak"] = max(seat_costs.get("context_peak", 0.0), read)
    return by_seat


def _event_costs(stamped: StampedEvent) -> dict[str, float]:
    event = stamped.event
    if event["kind"] == "call":
        return {"service_us": float(stamped.duration_us)}
    if event["kind"] != "model_call":
        return {}
    spent_units = event.get("spent")
    costs = {"model_us": float(stamped.duration_us)}
    for name, amount in spent_units.items() if isinstance(spent_units, dict) else ():
        costs[name] = float(str(amount))
    for name, amount in _reported(event).items():
        costs[f"{name}_tokens"] = amount
    return costs


def _reported(event: JsonObject) -> dict[str, float]:
    """Return the tokens that a provider reported; empty for other events."""
    reported = event.get("reported")
    items = reported.items() if isinstance(reported, dict) else ()
    return {name: float(str(amount)) for name, amount in items}


def _amounts(calls: Sequence[AnsweredCall]) -> dict[str, float]:
    return {
        "steps": float(len(calls)),
        "calls": float(len(calls)),
        "retries": float(sum(map(counts_as_retry, calls))),
        "sent_bytes": float(sum(_size(dict(call.sent)) for call in calls)),
        "received_bytes": float(sum(map(_answer_bytes, calls))),
    }


def counts_as_retry(call: AnsweredCall) -> bool:
    """Return whether a call failed for another reason than that no call was left.

    The last failure counts too, although the budget had no retry left to charge for it.
    """
    failure = call.failure
    return failure is not None and (failure.kind, failure.code) != NO_CALL_LEFT


NO_CALL_LEFT = (FailureKind.OUT_OF_BUDGET, "budget_exceeded")
"""Kind and code of the failure of a call that was not executed."""


def _answer_bytes(call: AnsweredCall) -> int:
    return _size(call.output if call.failure is None else call.failure.to_json())


def _size(value: object) -> int:
    return len(canonical_json(value))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
