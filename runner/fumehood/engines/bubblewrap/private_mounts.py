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

import ctypes
import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fumehood.engines.engine import Limits
from fumehood.engines.state_folder import claim_folder, machine_folder

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
_TERMINALS_MAX = 64
"""Pseudo-terminals of a box. All boxes of a machine together have about 3,000. Source: pty(7)."""
_NEW_MOUNT_NAMESPACE = 0x0002_0000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_RECURSIVE, _SLAVE = 1 << 14, 1 << 19
_DETACH = 2
"""CLONE_NEWNS, MS_* and MNT_DETACH. Source: linux/sched.h, linux/mount.h."""


@dataclass(frozen=True, slots=True)
class PrivateView:
    """The private sources of one box."""

    folder: Path
    """Folder of this box in the private namespace."""
    sources: dict[Path, Path]
    """Private source by source on the host."""
    tmp: Path
    terminals: Path
    """The folder of its pseudo-terminals."""

    def device(self, name: str) -> Path:
        """Return the node of a device."""
        return self.folder / "dev" / name


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
        folder = self._next_folder()
        view = PrivateView(folder, {}, folder / "tmp", folder / "pts")
        try:
            for number, source in enumerate(shared):
                view.sources[source] = self._private(source, folder / str(number))
            view.tmp.mkdir()
            files = limits.tmp_bytes // TMP_BYTES_PER_FILE
            options = f"mode=1777,size={limits.tmp_bytes},nr_inodes={files}"
            _mount("tmpfs", view.tmp, "tmpfs", _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS, options)
            view.terminals.mkdir()
            options = f"newinstance,ptmxmode=0666,mode=0620,max={_TERMINALS_MAX}"
            _mount("devpts", view.terminals, "devpts", _NO_SETUID | _NO_PROGRAMS, options)
            (folder / "dev").mkdir()
            for name, (major, minor) in DEVICES.items():
                os.mknod(view.device(name), stat.S_IFCHR, os.makedev(major, minor))
                view.device(name).chmod(0o666)
        except OSError:
            self.drop(view)
            raise
        return view

    def drop(self, view: PrivateView) -> None:
        """Remove the sources of a box; its own namespace keeps them until it ends."""
        _unmount(view.folder)  # With all mounts below.
        view.folder.rmdir()

    def _next_folder(self) -> Path:
        if self._folder is None:
            self._folder = _enter_private_namespace()
        # A box can read this name, so it does not count the boxes.
        folder = self._folder / secrets.token_hex(4)
        folder.mkdir()
        _mount("tmpfs", folder, "tmpfs", _NO_SETUID, "mode=0700,size=16m")
        return folder

    def _private(self, source: Path, target: Path) -> Path:
        if not source.is_dir():
            shutil.copy(source, target)
            return target
        target.mkdir()
        empty = target.with_suffix(".empty")
        empty.mkdir()
        # A box can read the options of its mounts, so they name descriptors and not folders. A
        # read-only overlay needs two folders.
        lower = [os.open(layer, os.O_PATH | os.O_CLOEXEC) for layer in (source, empty)]
        try:
            folders = ":".join(f"/proc/self/fd/{layer}" for layer in lower)
            flags = _READ_ONLY | _NO_SETUID | _NO_DEVICES
            _mount("overlay", target, "overlay", flags, f"lowerdir={folders}")
        finally:
            for layer in lower:
                os.close(layer)
        return target


def _enter_private_namespace() -> Path:
    """Give this thread a mount namespace, and return an empty folder in memory that only it sees.

    Later mounts of the host still arrive; mounts of this thread stay here.
    """
    folder = machine_folder("views")
    claim_folder(folder)
    _check(_libc().unshare(_NEW_MOUNT_NAMESPACE), Path("/"))
    _mount("none", Path("/"), "", _RECURSIVE | _SLAVE, "")
    _mount("tmpfs", folder, "tmpfs", _NO_SETUID, "mode=0700,size=1m")
    return folder


def _mount(source: str, target: Path, kind: str, flags: int, options: str) -> None:
    done = _libc().mount(
        source.encode(), os.fsencode(target), kind.encode(), flags, options.encode()
    )
    _check(done, target)


def _unmount(target: Path) -> None:
    _check(_libc().umount2(os.fsencode(target), _DETACH), target)


def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mount.argtypes = (
        *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p),
        *(ctypes.c_ulong, ctypes.c_char_p),
    )
    return library


def _check(result: int, target: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))
