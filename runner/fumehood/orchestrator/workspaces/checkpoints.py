"""Checkpoints: what a workspace changed, as a tar from which later trials start.

Its paths are relative to /. As in a layer of an image, an empty file ``.wh.NAME`` states that NAME
is deleted. Source: OCI image specification 1.1, layer.md, "Whiteouts".
"""

from __future__ import annotations

import io
import os
import tarfile
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Case, Suite
from fumehood.engines.engine import WorkspaceBox
from fumehood.orchestrator.workspaces.artifacts import (
    BYTES_MAX,
    FILES_MAX,
    OWN,
    BadArtifacts,
    check_deleted,
    entries_of,
    in_tree_order,
    is_below,
)
from fumehood.scorers.verdict import WORKSPACE

CHECKPOINT = "checkpoint"
"""Setting of a task: the file and its digest. In the first state of the task: the digest."""
_TIME_MIN_S, _TIME_END_S = -(1 << 31), 1 << 34
"""Times that a file can have. Source: Linux, filesystems/ext4/inodes."""
_WHITEOUT = ".wh."
_NO_NAMES = {f"{_WHITEOUT}{name}" for name in ("", ".", "..", ".wh.opq")}
"""Marks that name no file; the last one is an opaque folder."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """From what a workspace starts, in addition to its image."""

    archive: bytes
    """Regular files and folders, as a tar relative to /."""
    deleted: tuple[str, ...]
    """Absolute paths to delete."""
    sha256: str
    """Digest of its file, in hexadecimal."""


def with_checkpoint(suite: Suite, path: Path | None) -> Suite:
    """Return the suite whose only task starts from a checkpoint; None changes nothing.

    The digest is part of the task, so runs from different checkpoints are runs of different tasks.

    Raises:
        InputError: the suite has no workspace or several tasks, or the file cannot be used.
    """
    if path is None:
        return suite
    if len(suite.cases) != 1:
        raise InputError(
            f"--from-workspace: the suite has {len(suite.cases)} tasks, but a checkpoint belongs "
            "to one: name it, for example harbor:PATH:TASK"
        )
    (case,) = suite.cases
    if (settings := case.gold.criterion(WORKSPACE)) is None:
        raise InputError(
            f"--from-workspace has no effect: the task {case.task.task_id} has no workspace; "
            "remove it"
        )
    digest = read_checkpoint(path).sha256
    changed: JsonObject = {
        **settings,
        CHECKPOINT: {"file": str(path.absolute()), "sha256": digest},
    }
    others = [each for each in case.gold.criteria if each is not settings]
    gold = replace(case.gold, criteria=(changed, *others))
    task = replace(case.task, initial_state={**case.task.initial_state, CHECKPOINT: digest})
    return replace(suite, cases=(Case(task, gold),))


def checkpoint_of(settings: Mapping[str, Json]) -> Checkpoint | None:
    """Return the checkpoint of a task; None if it starts from its image.

    Raises:
        InputError: the file is missing, or is not that of the run.
    """
    named = settings.get(CHECKPOINT)
    if not isinstance(named, dict):
        return None
    checkpoint = read_checkpoint(Path(str(named["file"])))
    if checkpoint.sha256 != named["sha256"]:
        raise InputError(
            f"{named['file']} differs from the checkpoint of the run: restore the file, or start a "
            "new run"
        )
    return checkpoint


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        InputError: the file cannot be read, is too large, or contains a link, a device, a path of
            the verifier, or a path that it also deletes.
    """
    try:
        if path.stat().st_size > 2 * BYTES_MAX:
            raise BadArtifacts(f"it has more than {2 * BYTES_MAX} bytes")
        content = path.read_bytes()
        archive, deleted = _parts(content)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name the tar of a workspace") from None
    except BadArtifacts as error:
        raise InputError(f"{path} is not a checkpoint of a workspace: {error}") from None
    return Checkpoint(archive, deleted, sha256(content).hexdigest())


def _parts(content: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return the files and folders of a checkpoint, and what it deletes."""
    kept, paths, deleted, size = io.BytesIO(), set[str](), list[str](), 0
    with tarfile.open(fileobj=kept, mode="w") as target:
        for entry, data in entries_of("/", content):
            path, size = PurePosixPath(entry.name), size + len(data)
            # A compressed tar can be much smaller than its content.
            if size > BYTES_MAX or len(paths) + len(deleted) > FILES_MAX:
                raise BadArtifacts(
                    f"it has more than {BYTES_MAX} bytes or {FILES_MAX} files and folders"
                )
            if not (entry.isreg() or entry.isdir()):
                raise BadArtifacts(f"{path} is neither a file nor a folder")
            # The init program of an engine is a hidden file of the root.
            is_hidden = len(path.parts) > 1 and path.parts[1].startswith(".")
            is_own = is_hidden or any(is_below(entry.name, own) for own in OWN)
            if path.name in _NO_NAMES or is_own:
                raise BadArtifacts(f"it may not contain {path}")
            if path.name.startswith(_WHITEOUT):
                deleted.append(str(path.with_name(path.name.removeprefix(_WHITEOUT))))
            else:
                paths.add(entry.name)
                target.addfile(_clean(entry, data), io.BytesIO(data))
    check_deleted(deleted)
    ordered = sorted(paths, key=in_tree_order)
    for gone in sorted(deleted):
        at = bisect_left(ordered, in_tree_order(gone), key=in_tree_order)
        if at < len(ordered) and is_below(ordered[at], gone):
            raise BadArtifacts(f"it contains and deletes {gone}")
    return kept.getvalue(), tuple(deleted)


def tar_of_changes(box: WorkspaceBox, tops: Collection[str]) -> bytes:
    """Return the checkpoint of a killed or paused workspace.

    Links, devices, pipes, sockets and names that would delete something are left out. Everything
    belongs to root.

    Args:
        box: the workspace.
        tops: folders whose changes count.

    Raises:
        BadArtifacts: its content cannot be copied.
        TooLarge: it is too large.
        InfraError: the engine does not answer.
    """
    changed, content, left_bytes, kept = box.changed(), io.BytesIO(), BYTES_MAX, 0
    deleted = [path for path in box.deleted() if any(is_below(path, top) for top in tops)]
    check_deleted(deleted)
    with tarfile.open(fileobj=content, mode="w") as target:
        for top in tops:
            archive = box.copy_out(top, left_bytes) or b""
            left_bytes -= len(archive)
            for entry, data in entries_of(top, archive) if archive else ():
                if entry.name == top and not entry.isdir():
                    raise BadArtifacts(f"{top} is no folder any more")
                parts = PurePosixPath(entry.name).parts
                if any(part.startswith(_WHITEOUT) for part in parts):
                    continue
                if entry.name in changed and (entry.isreg() or entry.isdir()):
                    kept += 1
                    target.addfile(_clean(entry, data), io.BytesIO(data))
        for path in map(PurePosixPath, deleted):
            if str(path) in tops:
                raise BadArtifacts(f"{path} was deleted")
            target.addfile(tarfile.TarInfo(str(path.with_name(_WHITEOUT + path.name))[1:]))
    if kept > FILES_MAX:
        raise BadArtifacts(f"the workspace has more than {FILES_MAX} changed files and folders")
    return content.getvalue()


def keep(content: bytes, path: Path) -> str:
    """Write a checkpoint and return its digest in hexadecimal.

    Raises:
        InfraError: the file cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}") from error
    return sha256(content).hexdigest()


def check_can_be_kept(suite: Suite) -> None:
    """Raise InputError if no task of a suite has a workspace."""
    if all(case.gold.criterion(WORKSPACE) is None for case in suite.cases):
        raise InputError("--keep-workspaces has no effect: the suite has no workspace; remove it")


def check_not_kept(paths: Iterable[Path]) -> None:
    """Raise InputError if a new run would replace a checkpoint."""
    if existing := next((path for path in paths if path.exists()), None):
        raise InputError(f"--keep-workspaces: {existing} exists already: choose another folder")


def _clean(entry: tarfile.TarInfo, data: bytes) -> tarfile.TarInfo:
    clean = tarfile.TarInfo(entry.name.lstrip("/"))
    clean.type = tarfile.REGTYPE if entry.isreg() else tarfile.DIRTYPE
    clean.mode, clean.size = entry.mode & 0o777, len(data)
    # A tar can state times that no file can have, such as infinity.
    clean.mtime = entry.mtime if _TIME_MIN_S <= entry.mtime < _TIME_END_S else 0
    return clean
