"""The almanac of Brennholm, an invented island: thirty documents and ten questions."""

from __future__ import annotations

from pathlib import Path

from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.format.manifest import Manifest
from fumehood_snapshots.questions import QuestionSet
from fumehood_snapshots.sources.jsonl import JsonLines

NAME = "almanac"
"""Name of the snapshot, and its default folder."""
DOCUMENTS = Path(__file__).with_name("documents.jsonl")
QUESTIONS = QuestionSet(Path(__file__).with_name("questions"))
LICENCE = "Written for this project, under its own licence, Apache-2.0."


def build_almanac(out: Path) -> Manifest:
    """Build the snapshot from the bundled documents.

    Raises:
        SnapshotInputError: ``out`` exists.
    """
    options = BuildOptions(name=NAME, licences=(LICENCE,))
    return build_snapshot([JsonLines(DOCUMENTS)], out, options)
