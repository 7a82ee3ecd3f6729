"""Sixty questions on Python's documentation, and the snapshot that they are asked of."""

from __future__ import annotations

from pathlib import Path

from fumehood_snapshots.build.options import BuildOptions, Pace
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.build.progress import Progress, silent
from fumehood_snapshots.format.manifest import Manifest
from fumehood_snapshots.pythondoc.source import INSTALLED, LICENCE, PythonDocs
from fumehood_snapshots.questions import QuestionSet

QUESTIONS = QuestionSet(Path(__file__).with_name("questions"))
NAME = "python-doc"
"""What the snapshot is called, and its folder unless told otherwise."""


def build_python_docs(
    out: Path, root: Path = INSTALLED, pace: Pace | None = None, progress: Progress = silent
) -> Manifest:
    """Build the snapshot from the installed package.

    Args:
        out: the folder to make.
        root: where the package lies.
        pace: workers and sizes.
        progress: told of each stage.

    Raises:
        SnapshotInputError: the package is not installed, or ``out`` exists.
    """
    # Sections are cut out of their pages before, so nothing is left to be told apart from the main text.
    options = BuildOptions(name=NAME, extractor="whole-page", licences=(LICENCE,))
    return build_snapshot([PythonDocs(root)], out, options, pace, progress)
