"""ToolMisuseBench as a benchmark: published or generated files become a suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fumehood.benchmarks.cases import cases_of
from fumehood.benchmarks.toolmisuse.criteria import refuse_unusable_criteria
from fumehood.benchmarks.toolmisuse.files import SPLITS, split_of_argument
from fumehood.benchmarks.toolmisuse.oracles import OracleRecord, read_oracles
from fumehood.benchmarks.toolmisuse.record import TaskRecord
from fumehood.benchmarks.toolmisuse.split import read_split
from fumehood.benchmarks.toolmisuse.task import case_of
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Case, Suite

ABOUT = About(
    licence="CC-BY-4.0 where the tasks are the published ones; generated ones belong to whoever made them",
    criterion="all success criteria of the record hold, as the reference evaluates them",
    judged="the final state of the world and the transcript of calls",
)


class ToolMisuseBench:
    """Argument: ``PATH[:SPLIT]``, a folder in a published layout or one file of records."""

    def load(self, argument: str) -> Suite:
        """Return a split as a suite; every task is opened once, so that none fails later."""
        root, split = split_of_argument(argument)
        if split is None and root.is_dir():
            split = _only_split(root)
        records = read_split(root, split)
        oracles = read_oracles(root, split)
        cases = cases_of(records, lambda record: _case(record, oracles))
        return Suite(f"toolmisuse:{split or root.stem}", cases, about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Look for two keys that no other format has."""
        return {"domain", "toolset_id"} <= record.keys()


def _case(record: TaskRecord, oracles: Mapping[str, OracleRecord]) -> Case:
    refuse_unusable_criteria(record.success_criteria)
    return case_of(record, oracles.get(record.task_id))


def _only_split(root: Path) -> str:
    """Return the one split that a folder holds.

    Raises:
        InputError: it holds several, so the user has to say which.
    """
    found = [split for split in SPLITS if _holds(root, split)]
    if len(found) == 1:
        return found[0]
    choices = (f"toolmisuse:{root}:{split}" for split in found or SPLITS)
    raise InputError(f"{root}: say which split: {', '.join(choices)}")


def _holds(root: Path, split: str) -> bool:
    return (root / split).is_dir() or any(
        (root / f"{split}{end}").is_file() for end in (".jsonl", ".json")
    )
