"""Digests of the code of agents, which show whether it changed between two commands or machines."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from hashlib import file_digest, sha256
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.agent_code import find_module
from fumehood.engines.box_files import NOT_COPIED
from fumehood.engines.engine import AgentKind, AgentSource
from fumehood.engines.images.recipe import recipe_digest

MIB = 1 << 20
FOLDER_BYTES_MAX = 4096 * MIB
"""Of the files that Docker receives, which are written to a temporary file before. Sparse files
count fully."""
IGNORED_BYTES_MAX = MIB
"""Size of .dockerignore."""
NOT_IN_AGENTS = tuple(f"**/{name}" for name in sorted(NOT_COPIED))
"""Files of the folder of an agent that its image does not get: a run of its code on this machine
writes them, and they may differ from their source."""
_ALL_BITS = 0o177777
_KIND_AND_PROGRAM = 0o170100
"""The kind of a file and whether its owner may execute it. Other bits depend on the umask of who
copied the files to this machine."""


def code_digest(source: AgentSource) -> str:
    """Return the SHA-256 of an agent's own code; empty for a built-in agent and for an image.

    For ``module:Class`` it covers what a box gets: the file of the module, or all files of its top
    package. For a folder it covers the files that Docker receives, and for a recipe its files,
    which state the digests of its packages. It covers no installed package.

    Raises:
        InputError: the code does not exist, is too large or cannot be read.
    """
    try:
        if source.kind is AgentKind.FOLDER:
            return folder_digest(Path(source.name), left_out=NOT_IN_AGENTS)
        if source.kind is AgentKind.RECIPE:
            return recipe_digest(source.name)
        if source.kind is AgentKind.MODULE:
            module = find_module(source.name)
            code = module.resolve()  # A box gets the target of a link.
            folder, files = (code, _files_in(code)) if code.is_dir() else (code.parent, [code.name])
            return _digest(folder, files, module.name, _KIND_AND_PROGRAM)
    except OSError as error:
        raise InputError(f"cannot read the agent {source.name}: {error}") from None
    return ""


def folder_digest(folder: Path, base: str = "", *, left_out: Sequence[str] = ()) -> str:
    """Return a digest of the files of a folder, without those that .dockerignore excludes.

    Args:
        folder: to read.
        base: what else the digest depends on.
        left_out: patterns of further files to exclude.

    Raises:
        InputError: the files are too large.
    """
    # The library takes long to import, and most commands read no folder of an agent.
    from docker.utils import exclude_paths

    files = sorted(exclude_paths(str(folder), [*ignored_files(folder), *left_out]))
    size = sum((folder / name).lstat().st_size for name in files)
    if size > FOLDER_BYTES_MAX:
        raise InputError(
            f"the files of {folder} have {size // MIB} MiB, of at most {FOLDER_BYTES_MAX // MIB}; "
            "exclude those that the image does not need in .dockerignore"
        )
    return _digest(folder, files, base, _ALL_BITS)


def ignored_files(folder: Path) -> list[str]:
    """Return the patterns of .dockerignore.

    Raises:
        InputError: it is a link, a pipe or a device, larger than :data:`IGNORED_BYTES_MAX`, or not
            UTF-8.
    """
    path = folder / ".dockerignore"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; links are not followed") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path} is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(IGNORED_BYTES_MAX + 1)
    if len(content) > IGNORED_BYTES_MAX:
        raise InputError(f"{path} has more than {IGNORED_BYTES_MAX // MIB} MiB")
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _files_in(package: Path) -> list[str]:
    """Return the paths below a package that a box gets; links to folders are not followed."""
    found = []
    for folder, folders, names in os.walk(package):
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        found += [Path(folder, name) for name in (*folders, *names) if name not in NOT_COPIED]
    return sorted(str(path.relative_to(package)) for path in found)


def _digest(folder: Path, files: Iterable[str], base: str, mode_bits: int) -> str:
    digest = sha256(base.encode())
    for name in files:
        file = folder / name
        status = file.lstat()
        digest.update(os.fsencode(f"\0{name}\0{status.st_mode & mode_bits:o}\0"))
        if stat.S_ISLNK(status.st_mode):
            digest.update(os.fsencode(file.readlink()))
        elif stat.S_ISREG(status.st_mode):
            with file.open("rb") as content:
                digest.update(file_digest(content, sha256).digest())
    return digest.hexdigest()
