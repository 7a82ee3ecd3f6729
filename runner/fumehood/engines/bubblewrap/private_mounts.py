"""Gives each bubblewrap box, started by root, private inodes for the folders of the host.

Boxes that see one inode can exchange data through it: by record locks, which need only read access,
and by inotify. A read-only overlay makes new inodes for each mount; the file content below stays
shared. Device nodes are made anew, and /tmp gets a limit on its number of files, which bwrap cannot
set.

The mounts are in the mount namespace of the thread that starts boxes, so no other process sees
them, and the kernel removes them with the thread.
Source: Linux, filesystems/overlayfs, "Non-standard behavior"; mount_namespaces(7).
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fumehood.engines.engine import Limits
from fumehood.engines.private_namespace import (
    NO_DEVICES,
    NO_PROGRAMS,
    NO_SETUID,
    READ_ONLY,
    enter_private_namespace,
    mount,
    unmount,
)

DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
"""Major and minor number of each node. Source: Linux, admin-guide/devices.txt."""
TMP_BYTES_PER_FILE = 4096
"""Sets the number of inodes of /tmp: empty files use kernel memory too."""


@dataclass(frozen=True, slots=True)
class PrivateView:
    """The private sources of one box."""

    folder: Path
    """Folder of this box in the private namespace; a tmpfs."""
    sources: dict[Path, Path]
    """Private source by source on the host."""
    tmp: Path

    def device(self, name: str) -> Path:
        """Return the node of a device."""
        return self.folder / "dev" / name

    def make(self, limits: Limits) -> None:
        """Make the sources in the folder, which must be empty; raises OSError."""
        for source, target in self.sources.items():
            _make_private(source, target)
        self.tmp.mkdir()
        files = limits.tmp_bytes // TMP_BYTES_PER_FILE
        options = f"mode=1777,size={limits.tmp_bytes},nr_inodes={files}"
        mount("tmpfs", self.tmp, "tmpfs", NO_SETUID | NO_DEVICES | NO_PROGRAMS, options)
        (self.folder / "dev").mkdir()
        for name, (major, minor) in DEVICES.items():
            os.mknod(self.device(name), stat.S_IFCHR, os.makedev(major, minor))
            self.device(name).chmod(0o666)


def private_view(folder: Path, shared: Iterable[Path]) -> PrivateView:
    """Return the places of the private sources in ``folder``, which are not made yet."""
    sources = {source: folder / str(number) for number, source in enumerate(shared)}
    return PrivateView(folder, sources, folder / "tmp")


class PrivateMounts:
    """The private mounts of the boxes of one engine. Call every method from the same thread."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def make(self, shared: Iterable[Path], limits: Limits) -> PrivateView:
        """Make the sources of one box for the folders and files of the host that all boxes see.

        Raises:
            OSError: the kernel refuses, for instance because it has no overlays.
            InfraError: another user has access to the place of the mounts.
        """
        view = private_view(self._next_folder(), shared)
        try:
            view.make(limits)
        except OSError:
            self.drop(view)
            raise
        return view

    def drop(self, view: PrivateView) -> None:
        """Remove the sources of a box; its own namespace keeps them until it ends."""
        unmount(view.folder)  # With all mounts below.
        view.folder.rmdir()

    def _next_folder(self) -> Path:
        if self._folder is None:
            self._folder = enter_private_namespace()
        # A box can read this name, so it does not count the boxes.
        folder = self._folder / secrets.token_hex(4)
        folder.mkdir()
        mount("tmpfs", folder, "tmpfs", NO_SETUID, "mode=0700,size=16m")
        return folder


def _make_private(source: Path, target: Path) -> None:
    if not source.is_dir():
        shutil.copy(source, target)
        return
    target.mkdir()
    empty = target.with_suffix(".empty")
    empty.mkdir()
    # A box can read the options of its mounts, so they name descriptors and not folders. A
    # read-only overlay needs two folders.
    lower = [os.open(layer, os.O_PATH | os.O_CLOEXEC) for layer in (source, empty)]
    try:
        folders = ":".join(f"/proc/self/fd/{layer}" for layer in lower)
        flags = READ_ONLY | NO_SETUID | NO_DEVICES
        mount("overlay", target, "overlay", flags, f"lowerdir={folders}")
    finally:
        for layer in lower:
            os.close(layer)
