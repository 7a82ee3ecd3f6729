"""The almanac of Brennholm, an island that does not exist: thirty documents and ten questions."""

from __future__ import annotations

from pathlib import Path

from fumehood_snapshots.build.options import BuildOptions, Pace
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.build.progress import Progress, silent
from fumehood_snapshots.format.manifest import Manifest
from fumehood_snapshots.questions import QuestionSet
from fumehood_snapshots.sources.jsonl import JsonLines

NAME = "almanac"
"""What the snapshot is called, and its folder unless told otherwise."""
DOCUMENTS = Path(__file__).with_name("documents.jsonl")
QUESTIONS = QuestionSet(Path(__file__).with_name("questions"))
LICENCE = "Written for this project, under its own licence, Apache-2.0."


def build_almanac(out: Path, pace: Pace | None = None, progress: Progress = silent) -> Manifest:
    """Build the snapshot from the documents that come with the program.

    Raises:
        SnapshotInputError: ``out`` exists.
    """
    options = BuildOptions(name=NAME, licences=(LICENCE,))
    return build_snapshot([JsonLines(DOCUMENTS)], out, options, pace, progress)
