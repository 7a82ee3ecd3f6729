"""Oracles of generated tasks. The published record has no room for them, so they stand in files beside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from fumehood.benchmarks.reading import read_records
from fumehood.benchmarks.records import validated

FOLDER = "oracles"
"""Beside the folders of the splits, where the reference's reader does not look."""


class OracleRecord(BaseModel):
    """How one task is proven solvable, or that it is not."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task_id: str
    solvable: bool
    oracle: list[dict[str, Any]]
    """The moves that solve the task, or that end it rightly where nothing can."""


def oracle_file(root: Path, split: str) -> Path:
    """Return where the oracles of a split stand."""
    return root / FOLDER / f"{split}.jsonl"


def read_oracles(root: Path, split: str | None) -> Mapping[str, OracleRecord]:
    """Return the oracles of a split by task id; none where the suite has none, as the published ones.

    Raises:
        Unreadable: there is such a file and it cannot be used.
    """
    path = oracle_file(root, split or "")
    if split is None or not path.is_file():
        return {}
    records = [validated(record, OracleRecord).value for record in read_records(path)]
    return {record.task_id: record for record in records}
