"""Turns a finished run into one that a power cut interrupted."""

from __future__ import annotations

from pathlib import Path

from fumehood.orchestrator.setup import planned_of
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
