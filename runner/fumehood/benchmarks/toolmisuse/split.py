"""Reading one split: strictly, or exactly as the reference does.

The reference takes what cannot be run or compared: two tasks of one id, keys that stand twice, NaN, half
surrogate pairs, texts of any depth, a split that is misspelt or has no task. The strict reading refuses all
of these; the compatible one takes them as the reference does, and exists to prove that we know how.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fumehood.benchmarks.manifest import read_manifest, verify_files
from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable, read_records
from fumehood.benchmarks.records import refuse_duplicates, validated
from fumehood.benchmarks.toolmisuse.files import task_files
from fumehood.benchmarks.toolmisuse.published import verify_published
from fumehood.benchmarks.toolmisuse.record import TaskRecord

Records = tuple[Placed[TaskRecord], ...]


def read_split(root: Path, split: str | None) -> Records:
    """Return the records of a split in order, read strictly.

    Args:
        root: a folder in a published layout, or one file.
        split: which records to keep; None for all, where ``root`` is a file.

    Raises:
        Unreadable: a file or a record cannot be used, or no record belongs to the split.
    """
    files = (root,) if root.is_file() else task_files(root, split or "")
    for path in files:
        verify_published(path)
    manifest = read_manifest(root) if root.is_dir() else None
    if manifest is not None:
        verify_files(root, manifest, files)
    records = tuple(record for path in files for record in _read_tasks(path))
    refuse_duplicates(records)
    kept = tuple(each for each in records if split in (None, each.value.split))
    if not kept:
        asked = "" if split is None else f" of split {split!r}"
        raise Unreadable(Place(root), Problem.NOT_FOUND, f"holds no task{asked}")
    return kept


def read_split_as_reference(root: Path, split: str) -> Records:
    """Return the records of a split in order, as the reference reads them.

    Raises:
        Unreadable: the reference stops with an error too.
    """
    records = [
        validated(record, TaskRecord)
        for path in task_files(root, split)
        for record in read_records(path, lenient=True)
    ]
    return tuple(each for each in records if each.value.split == split)


def _read_tasks(path: Path) -> Iterator[Placed[TaskRecord]]:
    for record in read_records(path):
        if not _resembles_task(record.value):
            # Most often a manifest that lies among the task files.
            raise Unreadable(
                record.place,
                Problem.INVALID_RECORD,
                "is no task record; if the file holds no tasks, move it out of the folder, or name the task "
                "file itself",
            )
        yield validated(record, TaskRecord)


def _resembles_task(value: Any) -> bool:
    return isinstance(value, dict) and not TaskRecord.model_fields.keys().isdisjoint(value)
