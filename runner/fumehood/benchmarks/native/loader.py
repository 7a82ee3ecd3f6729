"""Files of native records as a benchmark."""

from __future__ import annotations

from pathlib import Path

from fumehood.benchmarks.cases import cases_of
from fumehood.benchmarks.manifest import read_manifest, verify_files
from fumehood.benchmarks.native.coherence import refuse_incoherent
from fumehood.benchmarks.native.record import TaskRecord
from fumehood.benchmarks.native.task import case_of
from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable, read_records
from fumehood.benchmarks.records import refuse_duplicates, validated
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import About, Case, Suite

ABOUT = About(
    licence="that of whoever wrote the records",
    criterion="every criterion of a task holds, and the work ended as it had to",
    judged="the final state of the world, the calls, the submitted answer, and whether the agent gave up",
)
FORMAT_PREFIX = "fumehood.task/"


class NativeRecords:
    """Argument: ``PATH[:SPLIT]``, a file of records, or a folder of such files, of which one may be named."""

    def load(self, argument: str) -> Suite:
        """Return the records as a suite; every task is opened once, so that none fails later."""
        if not argument:
            raise InputError("native needs a path: native:PATH or native:FOLDER:SPLIT")
        path = _path_of(argument)
        return Suite(path.stem or path.resolve().name, load_cases(path), about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Look for the format's own key."""
        return str(record.get("format", "")).startswith(FORMAT_PREFIX)


def load_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a file, or of all ``*.jsonl`` of a folder in the order of their names.

    Raises:
        Unreadable: a file or a record cannot be used.
    """
    return cases_of(read_tasks(path), _case)


def read_tasks(path: Path) -> tuple[Placed[TaskRecord], ...]:
    """Return the records of a file or folder in order.

    Raises:
        Unreadable: a file or a record cannot be used, two have one id, or there is none.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    folder = path if path.is_dir() else path.parent
    manifest = read_manifest(folder)
    if manifest is not None:
        verify_files(folder, manifest, files)
    records = tuple(
        validated(record, TaskRecord) for file in files for record in read_records(file)
    )
    if not records:
        raise Unreadable(Place(path), Problem.NOT_FOUND, "holds no task")
    refuse_duplicates(records)
    return records


def _path_of(argument: str) -> Path:
    head, _, split = argument.rpartition(":")
    # A path may hold colons itself, so what is there as a whole is taken as a whole.
    if head and not Path(argument).exists() and Path(head).is_dir():
        return Path(head) / f"{split}.jsonl"
    return Path(argument)


def _case(record: TaskRecord) -> Case:
    refuse_incoherent(record)
    return case_of(record)
