"""What a bubblewrap box sees of the host: its programs and libraries, our Python, the SDK, nothing personal.

Knows nothing about processes: it is a list of what is shown where, and arguments made of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fumehood.engines.engine import Mount

PYTHON_PREFIX = "/opt/python"
"""Where our Python is shown, unless it lies in /usr anyway."""
PACKAGES_FOLDER = "/opt/packages"
"""Where the SDK is shown."""

_TOP_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FILES = ("/etc/ld.so.cache", "/etc/alternatives")


@dataclass(frozen=True, slots=True)
class View:
    """Parts of the host, shown read-only."""

    mounts: tuple[Mount, ...]
    links: tuple[tuple[str, str], ...]
    """Target text and place of each symbolic link."""
    hidden: tuple[str, ...]
    """Folders inside the mounts that are shown empty: what else is installed here is not the agent's."""
    path: str
    """Search path for commands."""
    library_path: str
    """For the dynamic linker; empty where it needs none."""

    def with_mounts(self, mounts: Iterable[Mount]) -> View:
        """Return this view with more in it."""
        return View((*self.mounts, *mounts), self.links, self.hidden, self.path, self.library_path)

    def bwrap_arguments(self) -> Iterator[str]:
        """Yield the arguments that make bwrap show it."""
        for folder in self._folders_between():
            yield from ("--dir", folder)
        for target, place in self.links:
            yield from ("--symlink", target, place)
        for mount in self.mounts:
            yield from ("--ro-bind", str(mount.source), mount.target)
        for folder in self.hidden:
            yield from ("--tmpfs", folder, "--remount-ro", folder)

    def _folders_between(self) -> list[str]:
        # bwrap makes missing parents too, but such that only their owner may enter.
        parents = {
            str(parent) for mount in self.mounts for parent in PurePosixPath(mount.target).parents
        }
        shown = {mount.target for mount in self.mounts} | {"/"}
        return sorted(parents - shown)

    def holds_command(self, name: str) -> bool:
        """Tell whether ``name`` can be run inside: an absolute path, or a name on the search path."""
        if "/" in name:
            return self._is_executable(PurePosixPath("/", name))
        return any(
            self._is_executable(PurePosixPath(folder, name)) for folder in self.path.split(":")
        )

    def _is_executable(self, inside: PurePosixPath) -> bool:
        at_host = self._at_host(inside)
        return at_host is not None and at_host.is_file() and os.access(at_host, os.X_OK)

    def _at_host(self, inside: PurePosixPath) -> Path | None:
        for target, place in self.links:
            if inside.is_relative_to(place):
                inside = PurePosixPath("/", target) / inside.relative_to(place)
        for mount in sorted(self.mounts, key=lambda one: len(one.target), reverse=True):
            if inside.is_relative_to(mount.target):
                return mount.source / inside.relative_to(mount.target)
        return None


def host_view() -> View:
    """Return the least of this host that runs our Python."""
    prefix = Path(sys.base_prefix).resolve()
    in_usr = prefix == Path("/usr")
    inside = "/usr" if in_usr else PYTHON_PREFIX
    folders = [Path(top) for top in _TOP_FOLDERS if Path(top).exists()]
    mounts = [Mount(Path("/usr"), "/usr")]
    mounts += [Mount(folder, str(folder)) for folder in folders if not folder.is_symlink()]
    mounts += [Mount(Path(file), file) for file in _FILES if Path(file).exists()]
    if not in_usr:
        mounts.append(Mount(prefix, PYTHON_PREFIX))
    return View(
        mounts=tuple(mounts),
        links=tuple(
            (str(folder.readlink()), str(folder)) for folder in folders if folder.is_symlink()
        ),
        hidden=tuple(_package_folders(prefix, inside)),
        path="/usr/bin:/bin" if in_usr else f"{PYTHON_PREFIX}/bin:/usr/bin:/bin",
        library_path=f"{PYTHON_PREFIX}/lib"
        if not in_usr and any(prefix.glob("lib/libpython*.so*"))
        else "",
    )


def _package_folders(prefix: Path, inside: str) -> Iterator[str]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    at_host_and_inside = [
        (prefix / "lib" / version / "site-packages", f"{inside}/lib/{version}/site-packages"),
        (Path("/usr/lib/python3/dist-packages"), "/usr/lib/python3/dist-packages"),
        (Path("/usr/local"), "/usr/local"),
        (Path("/usr/src"), "/usr/src"),
    ]
    for at_host, shown in at_host_and_inside:
        if at_host.is_dir():
            yield shown
