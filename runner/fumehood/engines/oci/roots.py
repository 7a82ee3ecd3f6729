"""Keeps the unpacked root file systems of images in the user's cache, one folder per content.

A folder has the name of its image's digest and is complete: it is unpacked beside its place and
then renamed. Every engine that uses a root holds a shared lock on it, so no command removes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fumehood.core.errors import InfraError
from fumehood.engines.docker.image_settings import normalised
from fumehood.engines.images.sources import cache_folder
from fumehood.engines.oci.archive import ImageArchive
from fumehood.engines.records import MARKER, remove_tree

FOLDER = "oci"
"""Below the cache folder of the user."""
_UNFINISHED = ".unfinished-"
_CONFIG, _ROOT, _LOCK = "config.json", "rootfs", ".lock"
USERS = "/etc/passwd"
_USERS_BYTES_MAX = 64 * 1024
_HOME_FIELD = 5
"""Source: passwd(5)."""
_LINKS_MAX = 40
"""Source: path_resolution(7)."""


@dataclass(frozen=True, slots=True)
class Root:
    """An unpacked image."""

    folder: Path
    """The root file system."""
    config: dict[str, Any] = field(default_factory=dict)
    """The part ``config`` of the image's configuration. Source: OCI image specification."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the image."""
        return dict(pair.split("=", 1) for pair in self.config.get("Env") or () if "=" in pair)

    @property
    def users(self) -> bytes:
        """The content of /etc/passwd; empty if there is none."""
        return self.read(USERS, _USERS_BYTES_MAX)

    @property
    def home(self) -> str:
        """The home folder of root."""
        for line in self.users.decode("utf-8", "replace").splitlines():
            fields = line.split(":")
            if fields[2:3] == ["0"] and len(fields) > _HOME_FIELD:
                return fields[_HOME_FIELD] or "/"
        return "/"

    def resolved(self, path: str) -> str | None:
        """Return a path inside with all links resolved inside; None if it does not exist."""
        place = self.place(path)
        found = place is not None and os.path.lexists(self.folder / place.lstrip("/"))
        return place if found else None

    def place(self, path: str) -> str | None:
        """Return where a path leads inside, also if nothing is there; None for a loop of links."""
        waiting = normalised(path).split("/")[::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                done = done[:-1]
            elif part not in ("", "."):
                place = self.folder.joinpath(*done, part)
                if not place.is_symlink():
                    done.append(part)
                elif (links := links + 1) > _LINKS_MAX:
                    return None
                else:
                    target = os.readlink(place)
                    done = [] if target.startswith("/") else done
                    waiting += target.split("/")[::-1]
        return "/" + "/".join(done)

    def read(self, path: str, bytes_max: int) -> bytes:
        """Return the content of a file; empty if there is none, or if it is larger."""
        resolved = self.resolved(path)
        file = self.folder / (resolved or "/").lstrip("/")
        if resolved is None or not file.is_file() or file.stat().st_size > bytes_max:
            return b""
        return file.read_bytes()

    def is_program(self, path: str) -> bool:
        """Return whether a path is a file that everybody may execute."""
        resolved = self.resolved(path)
        file = self.folder / (resolved or "/").lstrip("/")
        return resolved is not None and file.is_file() and bool(file.stat().st_mode & 0o001)


class Roots:
    """The unpacked images of this user. Safe to use from several threads and processes."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    @cached_property
    def _folder(self) -> Path:
        folder = cache_folder(FOLDER)
        # Files of images have owners, who are other users of this machine.
        folder.chmod(0o700)
        return folder

    def get(self, digest: str) -> Root | None:
        """Return the unpacked image with a digest and keep it until :meth:`close`; None if there is
        none."""
        folder = self._folder / digest.removeprefix("sha256:")
        try:
            if digest not in self._held:
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                fcntl.flock(handle, fcntl.LOCK_SH)
                self._held[digest] = handle
            config = json.loads((folder / _CONFIG).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return Root(folder / _ROOT, config)

    def unpacked(self, digest: str, source: str, archive: Callable[[Path], ImageArchive]) -> Root:
        """Return the unpacked image with a digest; unpack it first if necessary.

        Args:
            digest: of the image.
            source: where the image comes from, as :meth:`stale` judges it.
            archive: opens its archive; the argument is a folder for temporary files.

        Raises:
            InputError: the archive is malformed.
            InfraError: the folder cannot be written.
        """
        with self._locked():
            root = self.get(digest)
            if root is None:
                unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
                try:
                    self._write(unfinished, source, archive)
                    unfinished.rename(self._folder / digest.removeprefix("sha256:"))
                except OSError as error:
                    raise InfraError(f"cannot unpack an image: {error}") from error
                finally:
                    remove_tree(unfinished)
                root = self.get(digest)
        assert root is not None
        return root

    def stale(self, is_current: Callable[[str, str], bool]) -> list[Path]:
        """Return the folders of roots whose source, given digest and source, is not current."""
        return [
            folder
            for folder in sorted(self._folder.iterdir())
            if (folder / MARKER).is_file()
            and not is_current(f"sha256:{folder.name}", (folder / MARKER).read_text("utf-8"))
        ]

    def remove(self, folder: Path) -> bool:
        """Remove a root; return False if an engine uses it or it cannot be removed."""
        if folder.parent != self._folder or not (folder / MARKER).is_file():
            return True
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with self._locked():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return not folder.exists()

    def close(self) -> None:
        """Let other commands remove the roots."""
        for handle in self._held.values():
            os.close(handle)
        self._held.clear()

    def _write(self, folder: Path, source: str, archive: Callable[[Path], ImageArchive]) -> None:
        (folder / _ROOT).mkdir()
        with archive(folder) as image:
            image.unpack(folder / _ROOT)
            config = image.config.get("config") or {}
        (folder / _CONFIG).write_text(json.dumps(config), "utf-8")
        (folder / MARKER).write_text(source, "utf-8")
        for rest in folder.glob("*.tar"):
            rest.unlink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self._folder.glob(f"{_UNFINISHED}*"):  # Its command was killed.
                remove_tree(left)
            yield
        finally:
            os.close(lock)
