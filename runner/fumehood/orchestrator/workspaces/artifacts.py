"""What a verifier gets of a workspace: files that the engine copied out, as a new tar.

A program of the workspace wrote the files, so links and devices are left out. A task without
declared artifacts gets the changes below its working folder, without files that would change how
its tests run: interpreters, folders of packages, and files that test runners and Python load by
themselves.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from fumehood.core.bounded_tar import BoundedEntry

BYTES_MAX = 256 << 20
"""Size of all copied files together."""
PATH_CHARS_MAX = 4096
"""Length of a path. The kernel accepts no longer one, but a tar can contain megabytes."""
FILES_MAX = 50_000
"""Files and folders: an engine needs time for each, and too much of it would look like its
failure."""
DELETED_MAX = 10_000
DELETED_BYTES_MAX = 1 << 20
"""All names are arguments of one command; see execve(2)."""
REWARD_FOLDER, TESTS_FOLDER = "/logs/verifier", "/tests"
OWN = (REWARD_FOLDER, TESTS_FOLDER)
"""Folders of the verifier, which nothing of the workspace reaches."""
FOLDERS = ("/logs", REWARD_FOLDER, "/logs/artifacts", "/logs/agent")
"""Created for the verifier."""
_PARTS_IN_FOLDER = len(("/", "folder", "file"))
LOADED_BY_THEMSELVES = re.compile(
    r"(?:^|/)(?:(?:site|dist)-packages|__pycache__|\.venv|venv|node_modules)(?:/|$)"
    r"|(?:^|/)(?:conftest|sitecustomize|usercustomize|pytest|_pytest)(?:\.py|/|$)"
    r"|\.(?:pth|pyc|so|egg-link)$"
    # Entry points name modules that test runners load as plugins.
    r"|\.(?:dist|egg)-info(?:/|$)"
    r"|(?:^|/)(?:\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|\.coveragerc)$"
    r"|(?:^|/)\.(?:bash\w*|zsh\w*|profile|env|envrc|gitconfig|curlrc|wgetrc|npmrc|rspec)(?:/|$)"
    # Folders below a home folder with programs, packages and settings of tools.
    r"|(?:^|/)\.(?:local|config/(?:git|pip|uv|fish)|cargo|rustup|nvm|npm|bun|deno|pyenv|rbenv|conda|pip)(?:/|$)"
    # A configuration of Git names programs, and the other files lead to another configuration.
    r"|(?:^|/)\.git(?:$|/(?:hooks|config|config\.worktree|commondir|modules|worktrees)(?:/|$))"
)
"""Paths of changed files that are left out unless the task declares them as artifacts."""
_DAMAGED = (
    *(tarfile.TarError, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, RecursionError, ValueError),
)
"""Errors that reading a damaged or hostile tar raises. The tar may be compressed."""


class BadArtifacts(Exception):
    """What a workspace contains cannot be copied."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The files of a workspace."""

    archive: bytes
    """A tar relative to /."""
    files: int
    left_out: int
    """Links, devices, and files that would change how tests run."""


def copied(
    tars: Iterable[tuple[str, bytes]], changed: Collection[str] | None, tests: bytes | None
) -> Copied:
    """Return the regular files and folders of tars, and the tests, as one tar, owned by root.

    Args:
        tars: path in the workspace and tar of it, as the engine copied it.
        changed: the only paths to keep, without those of :data:`LOADED_BY_THEMSELVES`; None keeps
            all. Nothing replaces tests or the folder of rewards.
        tests: a tar relative to /; None for no tests.

    Raises:
        BadArtifacts: a tar is damaged, or there are too many files.
    """
    content, left_out, files, kept = io.BytesIO(), 0, 0, 0
    with tarfile.open(fileobj=content, mode="w") as target:
        for folder in FOLDERS:
            target.addfile(_entry(folder, tarfile.DIRTYPE, 0o755))
        if tests:
            with tarfile.open(fileobj=io.BytesIO(tests)) as own:
                for entry in own:
                    entry.uid, entry.gid, entry.mode = 0, 0, entry.mode & 0o777
                    target.addfile(entry, own.extractfile(entry) if entry.isreg() else None)
        for path, archive in tars:
            for entry, data in entries_of(path, archive):
                if changed is not None and entry.name not in changed:
                    continue
                if not _is_kept(entry, path if changed is not None else None):
                    left_out += not entry.isdir()
                    continue
                is_file = entry.isreg()
                files, kept = files + is_file, kept + 1
                if kept > FILES_MAX:
                    raise BadArtifacts(
                        f"the workspace has more than {FILES_MAX} files and folders to copy"
                    )
                kind = tarfile.REGTYPE if is_file else tarfile.DIRTYPE
                clean = _entry(entry.name, kind, entry.mode & 0o777)
                clean.size = len(data)
                target.addfile(clean, io.BytesIO(data))
    return Copied(content.getvalue(), files, left_out)


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type, entry.mode = kind, mode
    return entry


def entries_of(path: str, archive: bytes) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the entries of a tar with their absolute paths, and the content of files."""
    above = PurePosixPath(path).parent
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), tarinfo=BoundedEntry) as source:
            for entry in source:
                parts = PurePosixPath(entry.name).parts
                if ".." in parts or entry.name.startswith("/"):
                    raise BadArtifacts(f"the tar of {path} has an entry outside")
                if len(entry.name) > PATH_CHARS_MAX:
                    raise BadArtifacts(f"the tar of {path} has a path that is too long")
                if entry.size > BYTES_MAX:
                    raise BadArtifacts(f"the tar of {path} has an entry that is too large")
                file = source.extractfile(entry) if entry.isreg() else None
                entry.name = str(above.joinpath(*parts))
                yield entry, file.read() if file is not None else b""
    except _DAMAGED as error:
        raise BadArtifacts(f"the tar of {path} cannot be read: {error}") from None


def tar_of(texts: Mapping[str, str], archive: bytes = b"") -> bytes:
    """Return a tar of files, relative to /, which everyone can read and execute, after those of
    another tar."""
    content = io.BytesIO(archive)
    # Python cannot append to an empty tar.
    with tarfile.open(fileobj=content, mode="a" if archive else "w") as target:
        for name, text in texts.items():
            data = text.encode("utf-8", "replace")
            entry = _entry(name, tarfile.REGTYPE, 0o755)
            entry.size = len(data)
            target.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def check_deleted(paths: Collection[str]) -> None:
    """Check that one command can delete paths.

    Raises:
        BadArtifacts: it cannot.
    """
    if len(paths) > DELETED_MAX:
        raise BadArtifacts(f"the workspace deleted {len(paths)} paths, of at most {DELETED_MAX}")
    if sum(len(path.encode("utf-8", "replace")) + 1 for path in paths) > DELETED_BYTES_MAX:
        raise BadArtifacts(f"the names of deleted paths have more than {DELETED_BYTES_MAX} bytes")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it.

    Args:
        path: absolute, without empty parts; it can have thousands of parts.
        folder: absolute.
    """
    top = str(PurePosixPath(folder)).rstrip("/")
    return path == top or path.startswith(f"{top}/")


def in_tree_order(path: str) -> str:
    """Return a key that sorts a folder directly before what is below it."""
    return path.replace("/", "\0")


def _is_kept(entry: tarfile.TarInfo, top: str | None) -> bool:
    """Return whether a verifier gets an entry; ``top`` is the folder of undeclared changes."""
    if not (entry.isreg() or entry.isdir()) or any(is_below(entry.name, own) for own in OWN):
        return False
    if entry.isdir() and entry.name.endswith("/.git"):
        return True
    return top is None or not is_loaded(entry.name.removeprefix(top))


def is_loaded(path: str) -> bool:
    """Return whether programs load a path by themselves, given without the working folder."""
    return LOADED_BY_THEMSELVES.search(path) is not None


def files_of(archive: bytes | None) -> dict[str, bytes]:
    """Return the regular files directly in the folder of a small tar by name; empty for None.

    Tests may copy folders of the agent below the folder of rewards, whose files are no rewards.

    Raises:
        BadArtifacts: the tar is damaged.
    """
    if archive is None:
        return {}
    return {
        PurePosixPath(entry.name).name: data
        for entry, data in entries_of("/x", archive)
        if entry.isreg() and len(PurePosixPath(entry.name).parts) == _PARTS_IN_FOLDER
    }
