"""Measures the uniqueness and the balance of the tasks of a suite.

Task files are read leniently: duplicate IDs are counted, not refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fumehood.benchmarks.native import records as native
from fumehood.benchmarks.shared.reading import Place, Problem, Unreadable, read_records
from fumehood.benchmarks.shared.records import validated
from fumehood.benchmarks.toolmisuse import records as toolmisuse
from fumehood.benchmarks.toolmisuse.tasks import read_split_as_reference
from fumehood.core.json_values import JsonObject, digest_json

CLEAN = "clean"
"""Label of tasks without a fault."""


@dataclass(frozen=True, slots=True)
class Row:
    """The measured properties of one task."""

    task_id: str
    domain: str
    instruction: str
    state_digest: str
    faults: tuple[str, ...]
    """In the order of the plan."""


@dataclass(frozen=True, slots=True)
class SplitQuality:
    """Quality of one split."""

    tasks: int
    instruction_uniqueness: float
    """Number of distinct instructions divided by the number of tasks."""
    state_uniqueness: float
    """Number of distinct initial states divided by the number of tasks."""
    duplicate_ids: int
    """Number of tasks with the ID of an earlier task."""
    domains: Mapping[str, int]
    primary_faults: Mapping[str, int]
    """First fault of the plan → number of tasks."""
    faults: Mapping[str, int]
    """Fault → number of tasks whose plan contains it."""

    def to_json(self) -> JsonObject:
        """Return the numbers, with the balance of each count: minimum divided by maximum."""
        return {
            "tasks": self.tasks,
            "instruction_uniqueness": round(self.instruction_uniqueness, 4),
            "state_uniqueness": round(self.state_uniqueness, 4),
            "duplicate_ids": self.duplicate_ids,
            "domains": dict(self.domains),
            "domain_balance": round(balance(self.domains), 4),
            "primary_faults": dict(self.primary_faults),
            "primary_fault_balance": round(balance(self.primary_faults), 4),
            "faults": dict(self.faults),
            "fault_balance": round(balance(self.faults), 4),
        }


@dataclass(frozen=True, slots=True)
class QualityReport:
    """Quality of a suite."""

    splits: Mapping[str, SplitQuality]

    def to_json(self) -> JsonObject:
        """Return the numbers of each split under ``splits``."""
        return {"splits": {name: quality.to_json() for name, quality in self.splits.items()}}


def quality_report(folder: Path) -> QualityReport:
    """Measure the tasks of a folder in the published layout or of a generated suite.

    Raises:
        Unreadable: the folder contains no split, or a record cannot be read.
    """
    splits: dict[str, SplitQuality] = {}
    for name in toolmisuse.SPLITS:
        if rows := _rows(folder, name):
            splits[name] = _quality(rows)
    if not splits:
        raise Unreadable(
            Place(folder),
            Problem.NOT_FOUND,
            f"contains none of the splits {', '.join(toolmisuse.SPLITS)}",
        )
    return QualityReport(splits)


def balance(counts: Mapping[str, int]) -> float:
    """Return the minimum count divided by the maximum count."""
    return min(counts.values()) / max(counts.values()) if counts else 1.0


def _quality(rows: Sequence[Row]) -> SplitQuality:
    return SplitQuality(
        tasks=len(rows),
        instruction_uniqueness=_share(rows, lambda row: row.instruction),
        state_uniqueness=_share(rows, lambda row: row.state_digest),
        duplicate_ids=len(rows) - len({row.task_id for row in rows}),
        domains=_count(row.domain for row in rows),
        primary_faults=_count(row.faults[0] if row.faults else CLEAN for row in rows),
        faults=_count(fault for row in rows for fault in dict.fromkeys(row.faults or (CLEAN,))),
    )


def _share(rows: Sequence[Row], feature: Callable[[Row], str]) -> float:
    return len({feature(row) for row in rows}) / len(rows)


def _count(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _rows(folder: Path, split: str) -> list[Row]:
    """Return the rows of a split; empty if the folder does not have it."""
    if _is_native(folder):
        file = folder / f"{split}.jsonl"
        records = read_records(file) if file.is_file() else ()
        return [_native_row(validated(record, native.TaskRecord).value) for record in records]
    try:
        return [_published_row(record.value) for record in read_split_as_reference(folder, split)]
    except Unreadable as error:
        if error.problem is Problem.NOT_FOUND:
            return []
        raise


def _is_native(folder: Path) -> bool:
    files = [file for split in toolmisuse.SPLITS if (file := folder / f"{split}.jsonl").is_file()]
    firsts = (first.value for file in files for first in islice(read_records(file), 1))
    return any("format" in first for first in firsts)


def _native_row(record: native.TaskRecord) -> Row:
    faults = tuple(fault.family for fault in record.fault_plan)
    return Row(
        record.task_id, record.world, record.instruction, digest_json(record.initial_state), faults
    )


def _published_row(record: toolmisuse.TaskRecord) -> Row:
    faults = tuple(fault.fault_type for fault in record.fault_plan)
    return Row(
        record.task_id, record.domain, record.instruction, digest_json(record.initial_state), faults
    )
