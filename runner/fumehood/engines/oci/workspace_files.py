"""Reads a workspace from outside, and unpacks files into one before it starts.

What a workspace changed is in the upper folder of its overlay, on a disk. Every function here works
on a file system that no process of a box can change: before the box starts, or after all its
processes have ended. Links are followed inside the root only.

Source: Linux, filesystems/overlayfs (whiteouts, opaque directories).
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from fumehood.core.errors import InfraError
from fumehood.engines.docker.written import ListedPaths, deleted_bytes, free_space, used_bytes
from fumehood.engines.engine import FreeSpace, TooLarge
from fumehood.engines.oci.box_root import BoxRoot
from fumehood.engines.oci.roots import Root

_OPAQUE = "trusted.overlay.opaque"
_PIECE_BYTES = 1 << 20
_REMOVAL_TIMEOUT_S = 60.0


class WorkspaceFiles:
    """The files of one workspace."""

    def __init__(self, root: BoxRoot, seen: Root, image: Root) -> None:
        """Look at the file system of a box that has not started yet.

        Args:
            root: of the box.
            seen: the same file system, as every thread of this process sees it.
            image: from which the box was started.
        """
        # A file of an overlay has another device than the overlay and the disk. Programs of the
        # box can delete this file later.
        self._device = os.lstat(seen.folder / root.mark.lstrip("/")).st_dev
        self._root = root
        self._seen = seen
        self._image = image

    def written_bytes(self, pid: int | None, bytes_max: int | None) -> int:
        """Return the size of the files that differ from the image, with that of deleted files that
        are open, and a size for each file.

        Args:
            pid: a process of the box.
            bytes_max: see :func:`used_bytes`.

        Raises:
            Unsettled: files moved meanwhile.
            TooLarge: the box holds too many files.
        """
        # Deleted files first, because a program can delay this measurement and write meanwhile.
        deleted = deleted_bytes(pid, self._device) if pid else 0
        return deleted + used_bytes(self._root.upper, bytes_max)

    def free_space(self) -> FreeSpace:
        """Return what is free on the disk with these files."""
        return free_space(self._root.upper)

    def differences(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return the changed and the deleted paths.

        Raises:
            TooLarge: there are too many.
            InfraError: a path is too long.
        """
        with _converted("compare the files of a workspace"):
            changed, deleted = differences(self._root.upper, self._image.folder)
        return changed - {self._root.mark}, deleted

    def copy_out(self, path: str, bytes_max: int) -> bytes | None:
        """Return a file or folder as a tar; None if there is no such path.

        Raises:
            TooLarge: the tar has more than ``bytes_max`` bytes.
            InfraError: it cannot be read.
        """
        with _converted("copy the files of a workspace"):
            return copy_out(self._seen, path, bytes_max)

    def unpack(self, archive: bytes) -> None:
        """Unpack a tar at /.

        Raises:
            InfraError: a path is too long, a loop of links, or below a file.
        """
        with _converted("unpack files into a workspace"):
            unpack(self._seen, archive)


def differences(upper: Path, lower: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the changed and the deleted paths of an overlay.

    Args:
        upper: its upper folder.
        lower: the unpacked image.

    Raises:
        TooLarge: too many paths differ, or their names are too long.
        OSError: a path is too long.
    """
    changed, deleted, folders = set[str](), list[str](), [PurePosixPath("/")]
    listed = ListedPaths()
    while folders:
        folder = folders.pop()
        place, names = upper / str(folder).lstrip("/"), set[str]()
        with os.scandir(place) as entries:
            for entry in entries:
                path, status = folder / entry.name, entry.stat(follow_symlinks=False)
                names.add(entry.name)
                listed.add(str(path))
                if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                    deleted.append(str(path))
                    continue
                changed.add(str(path))
                if stat.S_ISDIR(status.st_mode):
                    folders.append(path)
        if _is_opaque(place):
            deleted += [str(folder / name) for name in _names(lower, folder) if name not in names]
    return frozenset(changed), tuple(sorted(deleted))


def _is_opaque(folder: Path) -> bool:
    with suppress(OSError):
        return os.getxattr(folder, _OPAQUE) == b"y"
    return False


def _names(lower: Path, folder: PurePosixPath) -> list[str]:
    """Return the names in a folder of the image; none if a link or a file is at its place."""
    place = lower
    for part in folder.parts[1:]:
        place /= part
        if place.is_symlink() or not place.is_dir():
            return []
    return os.listdir(place)


def copy_out(root: Root, path: str, bytes_max: int) -> bytes | None:
    """Return a path as a tar, in which the last part of the path is the only one; None if it does
    not exist.

    Raises:
        TooLarge: the tar has more than ``bytes_max`` bytes.
        InfraError: tar failed.
    """
    wanted = PurePosixPath("/", path)
    above = root.resolved(str(wanted.parent))
    folder = root.folder / (above or "/").lstrip("/")
    # The last part is not followed: a link is copied as a link.
    if above is None or not os.path.lexists(folder / wanted.name) or not folder.is_dir():
        return None
    command = ["tar", "--create", "--format=gnu", "--numeric-owner", "--", f"./{wanted.name}"]
    archive = bytearray()
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(_PIECE_BYTES):
            archive += piece
            if len(archive) > bytes_max:
                process.kill()
                raise TooLarge(f"{path} has more than {bytes_max} bytes")
    if process.returncode != 0:
        raise InfraError(f"tar cannot copy {path} out of a workspace")
    return bytes(archive)


def prepare(root: Root, working_dir: str, archive: bytes, hosts: Iterable[str]) -> None:
    """Make the first files of a workspace.

    Args:
        root: of the box.
        working_dir: folder to make; empty for none.
        archive: a tar to unpack at /; empty for none.
        hosts: names that resolve to the box.

    Raises:
        InfraError: a path is too long, a loop of links, or below a file.
    """
    with _converted("make the first files of a workspace"):
        make_folder(root, working_dir or "/")
        if archive:
            unpack(root, archive)
        if lines := "".join(f"127.0.0.1\t{name}\n" for name in hosts):
            with (root.folder / "etc" / "hosts").open("a", encoding="ascii") as file:
                file.write(lines)


def unpack(root: Root, archive: bytes) -> None:
    """Unpack the folders, files and links of a tar at /; they replace what is there.

    Raises:
        OSError: a path is too long, a loop of links, or below a file.
        tarfile.TarError: the tar is damaged.
    """
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        for entry in entries:
            wanted = PurePosixPath("/", entry.name)
            folder = make_folder(root, str(wanted.parent))
            path = folder / wanted.name
            is_folder = path.is_dir() and not path.is_symlink()
            if is_folder and not entry.isdir():
                # Python would reach the limit of its recursion in a deep folder.
                command = ["rm", "-rf", "--", f"./{path.name}"]
                with suppress(subprocess.TimeoutExpired):
                    subprocess.run(
                        command,
                        cwd=folder,
                        check=False,
                        capture_output=True,
                        timeout=_REMOVAL_TIMEOUT_S,
                    )
            elif not is_folder:
                path.unlink(missing_ok=True)
            if entry.isdir():
                path.mkdir(exist_ok=True)
            elif entry.issym():
                path.symlink_to(entry.linkname)
                continue
            elif entry.islnk():
                target = root.resolved(entry.linkname)
                os.link(root.folder / str(target).lstrip("/"), path, follow_symlinks=False)
                continue
            elif entry.isreg():
                content = entries.extractfile(entry)
                assert content is not None
                with path.open("xb") as file:
                    shutil.copyfileobj(content, file)
            else:
                continue
            path.chmod(entry.mode & 0o777)
            os.utime(path, (entry.mtime, entry.mtime))


def make_folder(root: Root, path: str) -> Path:
    """Make a folder of a root with all folders above it, and return it.

    Raises:
        OSError: it is a loop of links, or a file is at its place.
    """
    place = root.place(path)
    if place is None:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    folder = root.folder / place.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_written(folder: Path) -> None:
    """Remove the folders with what a workspace wrote, however deep they are.

    Raises:
        InfraError: that takes too long. A later command tries again.
    """
    try:
        command = ["rm", "-rf", "--", *map(str, folder.iterdir())]
        subprocess.run(command, check=False, capture_output=True, timeout=_REMOVAL_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise InfraError(
            f"cannot remove the files of a workspace in {_REMOVAL_TIMEOUT_S} s"
        ) from error


@contextmanager
def _converted(action: str) -> Iterator[None]:
    """Convert errors of the file system and of tars to ``InfraError``."""
    try:
        yield
    except OSError as error:
        raise InfraError(f"cannot {action}: {error.strerror}") from error
    except tarfile.TarError as error:
        raise InfraError(f"cannot {action}: {error}") from error
