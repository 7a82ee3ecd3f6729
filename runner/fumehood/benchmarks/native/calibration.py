"""Fits the latencies of a scenario to recorded durations of calls (docs/scenarios.md)."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist, fmean, pstdev
from typing import Any

from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable, read_records
from fumehood.core.conditions import is_number
from fumehood.core.json_values import JsonObject

CALLS_MIN = 20
"""Smallest number of calls to which a log-normal distribution is fitted."""
SAMPLES_MAX = 50
"""Largest number of durations that represent a log."""

Durations = Mapping[str, Sequence[float]]
"""Milliseconds of each call, by tool."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The latency of one tool."""

    tool: str
    calls: int
    latency: JsonObject
    """In the form of ``time.latency``."""
    distance: float | None
    """Kolmogorov-Smirnov distance between the log and the log-normal fit; None without a fit."""
    critical_distance: float | None
    """The fit is rejected above this distance, at the level 5 %."""

    def to_json(self) -> JsonObject:
        """Return the fit."""
        return asdict(self)

    def remark(self) -> str:
        """Return how good the fit is, in words."""
        if self.distance is None or self.critical_distance is None:
            return f"{self.calls} calls, too few or equal ones for a log-normal fit"
        verb = "fits" if self.distance <= self.critical_distance else "does not fit"
        return (
            f"{self.calls} calls, log-normal {verb}: distance {self.distance:.3f}, "
            f"limit {self.critical_distance:.3f}"
        )


def read_durations(path: Path) -> Durations:
    """Return the durations in a CSV file with a header, or in a JSONL file.

    Each row has ``tool``, and ``duration_ms`` or ``duration_s``.

    Raises:
        Unreadable: names the row.
    """
    durations: dict[str, list[float]] = defaultdict(list)
    rows = _csv_rows(path) if path.suffix == ".csv" else _json_rows(path)
    for place, row in rows:
        tool, duration_ms = row.get("tool"), _milliseconds(row)
        if not isinstance(tool, str) or not tool or duration_ms is None:
            reason = "needs tool (text), and duration_ms or duration_s (a number, at least 0)"
            raise Unreadable(place, Problem.INVALID_RECORD, reason)
        durations[tool].append(duration_ms)
    if not durations:
        raise Unreadable(Place(path), Problem.NOT_FOUND, "contains no call")
    return durations


def _csv_rows(path: Path) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield Place(path, reader.line_num), row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(Place(path), Problem.NOT_FOUND, f"cannot be read: {error}") from None


def _json_rows(path: Path) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for record in read_records(path):
        yield record.place, record.value if isinstance(record.value, dict) else {}


def _milliseconds(row: Mapping[str, Any]) -> float | None:
    for key, factor in (("duration_ms", 1.0), ("duration_s", 1000.0)):
        value = row.get(key)
        try:
            number = float(value) if isinstance(value, str) or is_number(value) else math.nan  # type: ignore[arg-type]
        except ValueError:
            number = math.nan
        if math.isfinite(number) and number >= 0:
            return number * factor
    return None


def fits_of(durations: Durations) -> list[Fit]:
    """Return the latency of each tool, by name: log-normal where that fits, otherwise samples.

    The parameters are maximum-likelihood estimates. The fit is tested with the Lilliefors test;
    critical values: Abdi and Molin, Lilliefors/Van Soest's test of normality, 2007.
    """
    return [_fit(tool, sorted(durations[tool])) for tool in sorted(durations)]


def _fit(tool: str, ordered_ms: Sequence[float]) -> Fit:
    calls = len(ordered_ms)
    samples: JsonObject = {"samples_ms": [round(value) for value in _thinned(ordered_ms)]}
    if calls < CALLS_MIN or ordered_ms[0] <= 0 or ordered_ms[0] == ordered_ms[-1]:
        return Fit(tool, calls, samples, None, None)
    logarithms = [math.log(value) for value in ordered_ms]
    fitted = NormalDist(fmean(logarithms), pstdev(logarithms))
    distance = max(
        max(abs(at / calls - share), abs((at + 1) / calls - share))
        for at, share in enumerate(map(fitted.cdf, logarithms))
    )
    critical = 0.895 / ((0.83 + calls) / math.sqrt(calls) - 0.01)
    median_ms = round(math.exp(fitted.mean))
    is_usable = distance <= critical and median_ms >= 1 and fitted.stdev <= 5
    log_normal: JsonObject = {"median_ms": median_ms, "sigma": round(fitted.stdev, 3)}
    return Fit(tool, calls, log_normal if is_usable else samples, distance, critical)


def _thinned(ordered: Sequence[float]) -> Iterable[float]:
    """Return all values, or quantiles at equal steps if there are many."""
    count = min(len(ordered), SAMPLES_MAX)
    return (ordered[int((at + 0.5) * len(ordered) / count)] for at in range(count))
