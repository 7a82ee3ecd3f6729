"""Turns a finished run into one that a power cut interrupted, and continues it."""

from __future__ import annotations

from pathlib import Path

from fumehood.orchestrator.run_plan import planned_of
from fumehood.records.run_folder import RunFolder
from fumehood.records.seals import Signing
from fumehood.records.signing_key import user_key
from tests.parts.reading import verified


def cut_short(run: Path, rows: int) -> None:
    """Keep the first rows of a run, with its plan sealed as at the start of the run."""
    names = tuple(planned.name for planned in planned_of(verified(run)))
    folder = RunFolder.open(run)
    folder.sign_with(Signing(user_key(), names))
    folder.reopen()
    lines = (run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (run / "episodes.jsonl").write_bytes(b"".join(lines[:rows]))


def append_rows(run: Path, whole: Path, count: int) -> None:
    """Append the next rows of the whole run, as the command that runs it would."""
    rows = run / "episodes.jsonl"
    present = len(rows.read_bytes().splitlines())
    lines = (whole / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    with rows.open("ab") as file:
        file.write(b"".join(lines[present : present + count]))


def seal(run: Path) -> None:
    """Seal a run that is complete again."""
    names = tuple(planned.name for planned in planned_of(verified(run)))
    folder = RunFolder.open(run)
    folder.sign_with(Signing(user_key(), names))
    folder.seal()
