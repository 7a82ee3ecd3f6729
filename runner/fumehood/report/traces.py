"""Reads traces for reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fumehood.core.errors import InputError
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.json_values import JsonObject
from fumehood.records.run_reader import RunReader
from fumehood.report.results import Result


@dataclass(frozen=True, slots=True)
class StampedEvent:
    """An event with the times of its trace record."""

    event: JsonObject
    wall_ms: int
    """Milliseconds since the Unix epoch."""
    duration_us: int


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """The trace of one episode. Without a trace, ``events`` is empty and ``evidence`` is None."""

    events: tuple[StampedEvent, ...]
    evidence: Evidence | None


def read_traces(folder: RunReader, results: Iterable[Result]) -> Iterator[tuple[Result, ReadTrace]]:
    """Yield each result with its trace, one at a time to limit memory.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    for result in results:
        yield result, _read(folder, result)


def _read(folder: RunReader, result: Result) -> ReadTrace:
    if not result.row.trace:
        return ReadTrace((), None)
    records = folder.read_trace(result.row)
    try:
        events = tuple(
            StampedEvent(json.loads(record.event_json), record.wall_ms, record.duration_us)
            for record in records
        )
        return ReadTrace(events, read_evidence(stamped.event for stamped in events))
    except ValueError as error:
        raise InputError(f"{folder.path / result.row.trace}: {error}") from None
