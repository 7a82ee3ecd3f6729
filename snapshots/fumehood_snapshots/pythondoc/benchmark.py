"""Sixty questions about Python's documentation, and their snapshot."""

from __future__ import annotations

from pathlib import Path

from fumehood_snapshots.build.options import BuildOptions, Pace, Progress, silent
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.format.manifest import Manifest
from fumehood_snapshots.pythondoc.source import INSTALLED, LICENCE, PythonDocs
from fumehood_snapshots.questions import QuestionSet

QUESTIONS = QuestionSet(Path(__file__).with_name("questions"))
NAME = "python-doc"
"""Name of the snapshot, and its default folder."""


def build_python_docs(
    out: Path, root: Path = INSTALLED, pace: Pace | None = None, progress: Progress = silent
) -> Manifest:
    """Build the snapshot from the installed package.

    Args:
        out: folder to create.
        root: folder of the package.
        pace: workers and sizes.
        progress: receives each stage.

    Raises:
        SnapshotInputError: the package is not installed, or ``out`` exists.
    """
    # Sections are already cut out of their pages, so the whole section is main text.
    options = BuildOptions(name=NAME, extractor="whole-page", licences=(LICENCE,))
    return build_snapshot([PythonDocs(root)], out, options, pace, progress)
