"""Gives each box an overlay of an unpacked image.

Its upper folder is small and in memory; that of a workspace is in a folder of a disk. The mounts
are in the mount namespace of the thread that starts boxes, so no other process sees them, and the
kernel removes them with the thread. All boxes share the page cache of the image, but no inode. For
an ordinary user, the mounts of each box are in the namespaces of its runtime.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fumehood.engines.private_namespace import (
    BIND,
    NO_DEVICES,
    NO_PROGRAMS,
    NO_SETUID,
    READ_ONLY,
    REMOUNT,
    enter_private_namespace,
    mount,
    unmount,
    views_folder,
)

INIT = "/.init"
"""The init program inside."""
_FOLDERS = ("dev", "etc", "fumehood", "proc", "tmp")
_ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "resolv.conf": "nameserver 127.0.0.1\nsearch .\n",
    "hostname": "localhost\n",
}
"""As in a container of docker without a network."""
_NULL = (1, 3)
"""Major and minor number of the null device. Source: Linux, admin-guide/devices.txt."""
_HYBRID = Path("/sys/fs/cgroup/unified")


@dataclass(frozen=True, slots=True)
class BoxRoot:
    """The mounts of one box, which only the thread that made them sees."""

    folder: Path
    mark: str
    """A path inside that leads to the init program and that no other box has."""
    upper: Path
    """What differs from the image."""

    @property
    def work(self) -> Path:
        """A folder for the kernel."""
        return self.upper.with_name("work")

    @property
    def merged(self) -> Path:
        """The root file system, as the thread that made it sees it."""
        return self.folder / "merged"

    @property
    def null(self) -> Path:
        """A null device that no other box has; for an ordinary user, an empty file."""
        return self.folder / "null"

    @property
    def state(self) -> Path:
        """The folder in which the runtime keeps its state."""
        return self.folder / "state"


def new_root(disk: Path | None = None) -> BoxRoot:
    """Return the places of a root that is not made yet.

    Args:
        disk: an empty folder for the upper folder; None to have it in memory.

    Raises:
        InfraError: another user has access to the place of the mounts.
    """
    # A box can read these names, so they count nothing.
    folder = views_folder() / secrets.token_hex(4)
    return BoxRoot(folder, f"/.{secrets.token_hex(8)}", (disk or folder) / "upper")


class BoxRoots:
    """The roots of the boxes of one engine. Call every method from the same thread."""

    def __init__(
        self,
        enter: Callable[[], Path] = enter_private_namespace,
        *,
        is_rootless: bool = False,
    ) -> None:
        """Make nothing yet.

        Args:
            enter: gives this thread a mount namespace, and returns :func:`views_folder`.
            is_rootless: whether the thread is in a user namespace.
        """
        self._enter = enter
        self._is_rootless = is_rootless
        self._folder: Path | None = None

    def make(self, root: BoxRoot, image: Path | None, init: Path, size_bytes: int) -> None:
        """Make the root of a box.

        Args:
            root: its places, from :func:`new_root`.
            image: the unpacked image; None for an empty one.
            init: the program that is the first process of a box.
            size_bytes: of what is in memory: the upper folder, unless it is on a disk.

        Raises:
            OSError: the kernel refuses, for instance because it has no overlays.
            InfraError: another user has access to the place of the mounts.
        """
        layers = [self._base(init), *([image] if image else [])]
        root.folder.mkdir()
        mount("tmpfs", root.folder, "tmpfs", NO_SETUID, f"mode=0700,size={size_bytes}")
        try:
            for made in (root.upper, root.work, root.merged, root.state):
                made.mkdir()
            root.upper.chmod(0o755)
            (root.upper / root.mark.lstrip("/")).symlink_to(INIT)
            self._make_null(root.null)
            self._overlay(root, layers)
        except OSError:
            self.drop(root)
            raise

    def drop(self, root: BoxRoot) -> None:
        """Remove the root of a box."""
        unmount(root.folder)  # With all mounts below.
        root.folder.rmdir()

    def _make_null(self, null: Path) -> None:
        if not self._is_rootless:
            os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(*_NULL))
            null.chmod(0o666)
            return
        null.touch()
        # The user of the box may own it.
        mount(str(null), null, "", BIND)
        flags = BIND | REMOUNT | READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS
        mount("none", null, "", flags)

    def _overlay(self, root: BoxRoot, layers: list[Path]) -> None:
        # A box can read the options of its mounts, so they name descriptors and not folders.
        folders = [*layers, root.upper, root.work]
        handles = [os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in folders]
        try:
            *lower, upper, work = (f"/proc/self/fd/{handle}" for handle in handles)
            options = f"lowerdir={':'.join(lower)},upperdir={upper},workdir={work}"
            # A renamed folder would be a reference to another one, and not contain its files. In a
            # user namespace, the kernel permits neither.
            options += ",userxattr" if self._is_rootless else ",redirect_dir=off,metacopy=off"
            # Otherwise a file has another device than its folder, so `du -x` would not count it.
            options += ",xino=on"
            mount("overlay", root.merged, "overlay", NO_SETUID, options)
        finally:
            for handle in handles:
                os.close(handle)

    def _base(self, init: Path) -> Path:
        """Return the layer that all images get: the init program and the targets of mounts."""
        if self._folder is None:
            self._folder = self._enter()
            with suppress(OSError):
                # crun refuses a version 2 beside version 1, although it makes no groups here.
                mount("tmpfs", _HYBRID, "tmpfs", READ_ONLY, "size=4k")
            base = self._folder / "base"
            base.mkdir(mode=0o755)
            mount("tmpfs", base, "tmpfs", NO_SETUID, "mode=0755,size=8m")
            for name in _FOLDERS:
                (base / name).mkdir()
            for name, text in _ETC.items():
                (base / "etc" / name).write_text(text, "ascii")
            (base / INIT.lstrip("/")).write_bytes(init.read_bytes())
            for path in base.rglob("*"):
                path.chmod(0o755 if path.is_dir() or path.name == ".init" else 0o644)
            # runc gives a mount the mode of the folder below.
            (base / "tmp").chmod(0o1777)
        return self._folder / "base"
