"""Loads ToolMisuseBench: files in the published layout, or a suite of this project's generator.

A split can be read in two ways. The strict reading refuses what cannot be run or compared:
duplicate task IDs, duplicate keys, NaN, lone surrogates, deep nesting, and an unknown or empty
split. The reference reading accepts all of these, as the reference implementation does; the
recorded cases of the reference test it. See docs/reference/toolmisuse.md, Files and Records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from fumehood.benchmarks.shared.manifest import read_manifest, verify_files
from fumehood.benchmarks.shared.reading import Place, Placed, Problem, Unreadable, read_records
from fumehood.benchmarks.shared.records import cases_of, refuse_duplicates, validated
from fumehood.benchmarks.toolmisuse.records import SPLITS, OracleRecord, TaskRecord
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError, SpecError, nearest
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

PROFILE = "toolmisuse"
SCORER = "toolmisuse"
ABOUT = About(
    licence="CC-BY-4.0 for the published tasks; the author decides for generated tasks",
    criterion="all success criteria of the record hold, evaluated as in the reference",
    scored_on="the final state of the world and the calls with their results",
)
ORACLES = "oracles"
"""Folder beside the folders of the splits; the reference does not read it."""
SHA256_BY_PUBLISHED_PATH = {
    "v0_2_large/dev.jsonl": "a5a2b49b28c66f01bdbac37966c00cca9c6a1027a6d4b5b3a8c1d1d359db27e3",
    "v0_2_large/test_public.jsonl": (
        "12c5e1e93926f4089dfc8d0c60cea53b556057360562375510744858fc6f1161"
    ),
}
"""Published folder and file name → SHA-256 in hex. The digests of the other files are unknown."""

_TRANSCRIPT_OPERATIONS = frozenset(
    {"tool_call", "successful_tool_call", "tool_output_path_equals", "tool_output_path_exists"}
)

Records = tuple[Placed[TaskRecord], ...]


class ToolMisuseBench:
    """Loads a split. Argument: ``PATH[:SPLIT]``, a folder in a published layout or one file."""

    source = "ToolMisuseBench 0.1 or 0.2, your files; or generated"

    def load(self, argument: str) -> Suite:
        """Return a split as a suite."""
        root, split = split_of_argument(argument)
        if split is None and root.is_dir():
            split = _only_split(root)
        records = read_split(root, split)
        oracles = read_oracles(root, split)
        cases = cases_of(records, lambda record: _checked_case(record, oracles))
        return Suite(f"toolmisuse:{split or root.stem}", cases, about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Return whether the record has two keys that no other format has."""
        return {"domain", "toolset_id"} <= record.keys()


def case_of(record: TaskRecord, oracle: OracleRecord | None = None) -> Case:
    """Return the task and the gold of a record.

    Args:
        record: published or generated.
        oracle: proof that the task is solvable or not; None for published records.

    Raises:
        SpecError: no world serves the domain of the record.
    """
    if record.domain == "mixed":
        raise SpecError("domain", "'mixed' is a label of the format; no world serves it")
    criteria = tuple(record.success_criteria)
    if oracle is None:
        return Case(_task(record), Gold(SCORER, criteria))
    return Case(_task(record), Gold(SCORER, criteria, oracle.solvable, tuple(oracle.oracle)))


def refuse_unusable_criteria(criteria: Iterable[Mapping[str, Json]]) -> None:
    """Raise for a path that is not a string, because the reference stops with an error there.

    Any other malformed criterion never holds. Source: docs/reference/toolmisuse.md, Criteria.

    Raises:
        SpecError: names the criterion and the key.
    """
    for index, criterion in enumerate(criteria):
        # The reference resolves ``path`` for every operation over the state, known or not.
        over_state = criterion.get("op") not in _TRANSCRIPT_OPERATIONS
        key = "path" if over_state else "output_path"
        if key in criterion and not isinstance(criterion[key], str):
            raise SpecError(
                f"success_criteria[{index}].{key}", f"must be a string, not {criterion[key]!r}"
            )


def split_of_argument(argument: str) -> tuple[Path, str | None]:
    """Return the path and the split of ``PATH[:SPLIT]``; the split is None if none is given.

    Raises:
        InputError: the path is missing, or the split does not exist.
    """
    if not argument:
        raise InputError("toolmisuse requires a path: toolmisuse:PATH or toolmisuse:PATH:SPLIT")
    head, colon, tail = argument.rpartition(":")
    # A path may contain colons: an existing path is never split.
    if not colon or Path(argument).exists():
        return Path(argument), None
    if tail in SPLITS:
        return Path(head), tail
    if Path(head).exists():
        raise InputError(f"there is no split {tail!r}; {nearest(tail, SPLITS)}")
    return Path(argument), None


def task_files(root: Path, split: str) -> tuple[Path, ...]:
    """Return the files that the reference reads for a split.

    These are all ``*.jsonl`` files and then all ``*.json`` files of ``root/split`` if that folder
    exists, otherwise of ``root``; each group in code-point order of the names. Subfolders are not
    searched.

    Raises:
        Unreadable: the folder does not exist or has no such file.
    """
    folder = root / split if (root / split).is_dir() else root
    if not folder.is_dir():
        raise Unreadable(Place(root), Problem.NOT_FOUND, "there is no such folder")
    files = (*sorted(folder.glob("*.jsonl")), *sorted(folder.glob("*.json")))
    if not files:
        raise Unreadable(Place(folder), Problem.NOT_FOUND, "contains no .jsonl or .json file")
    return files


def read_split(root: Path, split: str | None) -> Records:
    """Return the records of a split in order, in the strict reading.

    Args:
        root: a folder in a published layout, or one file.
        split: split to keep; None keeps all records of a file.

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
    kept = tuple(record for record in records if split in (None, record.value.split))
    if not kept:
        of_split = "" if split is None else f" of split {split!r}"
        raise Unreadable(Place(root), Problem.NOT_FOUND, f"contains no task{of_split}")
    return kept


def read_split_as_reference(root: Path, split: str) -> Records:
    """Return the records of a split in order, in the reference reading.

    Raises:
        Unreadable: the reference also stops with an error here.
    """
    records = [
        validated(record, TaskRecord)
        for path in task_files(root, split)
        for record in read_records(path, lenient=True)
    ]
    return tuple(record for record in records if record.value.split == split)


def read_oracles(root: Path, split: str | None) -> Mapping[str, OracleRecord]:
    """Return the oracles of a split by task ID; empty for suites without oracles.

    Raises:
        Unreadable: the oracle file cannot be used.
    """
    path = root / ORACLES / f"{split}.jsonl"
    if split is None or not path.is_file():
        return {}
    records = [validated(record, OracleRecord).value for record in read_records(path)]
    return {record.task_id: record for record in records}


def verify_published(path: Path) -> None:
    """Check the digest of a file that has the name of a published one; other files pass.

    Raises:
        Unreadable: the content differs from the published one, so results could not be compared.
    """
    name = f"{path.resolve().parent.name}/{path.name}"
    published = SHA256_BY_PUBLISHED_PATH.get(name)
    if published is None or not path.is_file():
        return
    digest = sha256(path.read_bytes()).hexdigest()
    if digest != published:
        raise Unreadable(
            Place(path),
            Problem.NOT_AS_PUBLISHED,
            f"is not the published {name} (SHA-256 {digest[:12]}…, published {published[:12]}…); "
            "download it again, or rename its folder if it is another file",
        )


def _task(record: TaskRecord) -> Task:
    budget = record.budget
    return Task(
        task_id=record.task_id,
        world=record.domain,
        harness_mode=PROFILE,
        initial_state=record.initial_state,
        fault_plan=tuple(
            FaultRule(index, fault.fault_type, fault.trigger, fault.severity, fault.payload)
            for index, fault in enumerate(record.fault_plan)
        ),
        seed=record.seed,
        seats=(
            SeatSpec(
                instruction=record.instruction,
                budget=Budget(
                    steps=budget.max_steps, calls=budget.max_tool_calls, retries=budget.max_retries
                ),
            ),
        ),
        tags={"split": record.split, "difficulty": record.difficulty},
    )


def _checked_case(record: TaskRecord, oracles: Mapping[str, OracleRecord]) -> Case:
    refuse_unusable_criteria(record.success_criteria)
    return case_of(record, oracles.get(record.task_id))


def _only_split(root: Path) -> str:
    """Return the one split of a folder.

    Raises:
        InputError: the folder has several splits, so the user must name one.
    """
    splits = [split for split in SPLITS if _has_split(root, split)]
    if len(splits) == 1:
        return splits[0]
    choices = (f"toolmisuse:{root}:{split}" for split in splits or SPLITS)
    raise InputError(f"{root}: name a split: {', '.join(choices)}")


def _has_split(root: Path, split: str) -> bool:
    return (root / split).is_dir() or any(
        (root / f"{split}{suffix}").is_file() for suffix in (".jsonl", ".json")
    )


def _read_tasks(path: Path) -> Iterator[Placed[TaskRecord]]:
    for record in read_records(path):
        if not _resembles_task(record.value):
            # Usually a manifest in the folder of the task files.
            raise Unreadable(
                record.place,
                Problem.INVALID_RECORD,
                "is not a task record; move the file out of the folder if it contains no tasks, or "
                "name the "
                "task file",
            )
        yield validated(record, TaskRecord)


def _resembles_task(value: Any) -> bool:
    return isinstance(value, dict) and not TaskRecord.model_fields.keys().isdisjoint(value)
