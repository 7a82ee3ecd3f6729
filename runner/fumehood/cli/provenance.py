"""Where the tasks of a reproduction come from."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fumehood.benchmarks.generator import GENERATORS
from fumehood.benchmarks.manifest import Manifest, read_manifest
from fumehood.benchmarks.toolmisuse.tasks import SHA256_BY_PUBLISHED_PATH, task_files
from fumehood.scorers.registry import score_evidence

if TYPE_CHECKING:
    from fumehood.report.paper.reproduction import Data

SEED = 42
"""The published generator's documented seed."""


def generated_tasks(root: Path, profile: str) -> Path:
    """Return a folder of generated tasks of the test split alone; made only where it is not there yet.

    Raises:
        InputError: there is no such profile, or the folder holds something else.
    """
    if not (root.is_dir() and read_manifest(root)):
        only_test = {"train": 0, "dev": 0}
        GENERATORS.load("toolmisuse")(profile, SEED, root, splits=only_test, judge=score_evidence)
    return root


def data_of(root: Path, split: str, tasks: int) -> Data:
    """Return what is known of the files that a split was read from.

    Args:
        root: folder of a published layout, or one file.
        split: that was run.
        tasks: in it.
    """
    from fumehood.report.paper.reproduction import Data

    files = (root,) if root.is_file() else task_files(root, split)
    digests = {path: sha256(path.read_bytes()).hexdigest() for path in files}
    manifest = read_manifest(root) if root.is_dir() else None
    return Data(
        path=str(root),
        files=tuple((path.name, digest) for path, digest in digests.items()),
        tasks=tasks,
        generated=None if manifest is None else _made_from(manifest),
        published_as=next(
            (
                name
                for name, known in SHA256_BY_PUBLISHED_PATH.items()
                if known in digests.values() and split in name
            ),
            None,
        ),
    )


def _made_from(manifest: Manifest) -> str:
    return f"profile {manifest.profile}, release {manifest.release}, seed {manifest.seed}"
