"""Reads image archives and unpacks them: OCI archives and layouts, and files of ``docker save``.

All layers are merged in memory first, so a file that a later layer removes is never written. Links
are made last, so no file is written through a link of the image. Device nodes, pipes and bits that
give privileges (set-user-ID) are left out.

Source: OCI image specification 1.0 (image layout, manifest, filesystem layer).
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import re
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from fumehood.core.bounded_tar import BoundedEntry, count_headers
from fumehood.core.errors import InputError

ROOT_BYTES_MAX = 16 << 30
"""Of the files of all layers of an image."""
_ENTRIES_MAX = 1 << 20
"""Of all layers together, like ``ROOT_BYTES_MAX``. Folders that no layer lists count, too."""
_PATHS_BYTES_MAX = 256 << 20
"""Of the paths of all files and folders together. Python keeps each whole path in memory."""
_LAYERS_MAX = 127
"""The limit of some of Docker's storage drivers. Each layer is an open file during unpacking."""
_TOO_LARGE = (
    f"it has more than {ROOT_BYTES_MAX >> 30} GiB, {_ENTRIES_MAX} files and folders, "
    f"or {_PATHS_BYTES_MAX >> 20} MiB of paths"
)
_DOCUMENT_BYTES_MAX = 4 << 20
_PADDING_BYTES_MAX = 1 << 20
"""After the last entry of a tar."""
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_MODE = 0o1777
_OWN_FOLDER, _OWN_FILE = 0o700, 0o400
_USER_MAX = 65535
"""A larger owner becomes root: the users of boxes are above."""
_PIECE_BYTES = 1 << 20
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_DIGEST = re.compile("sha256:([0-9a-f]{64})")
_MALFORMED = (
    *(tarfile.TarError, zlib.error, lzma.LZMAError),
    *(LookupError, TypeError, ValueError, AttributeError, EOFError, RecursionError),
    *(ArithmeticError, MemoryError),
)


@dataclass(frozen=True, slots=True)
class _Blob:
    name: str
    digest: str
    """Empty if the archive states none."""


class _Left:
    """What the tars that share it may still contain."""

    def __init__(self) -> None:
        self._bytes, self._entries = ROOT_BYTES_MAX, _ENTRIES_MAX
        self._path_bytes = _PATHS_BYTES_MAX
        self.header_bytes = 0
        """Of the tars that were read."""

    def take(self, size_bytes: int, entries: int = 0, path_bytes: int = 0) -> None:
        """Count content; raises ValueError if it exceeds a limit."""
        self._bytes -= size_bytes
        self._entries -= entries
        self._path_bytes -= path_bytes
        if min(self._bytes, self._entries, self._path_bytes) < 0:
            raise ValueError(_TOO_LARGE)


class ImageArchive:
    """An archive file, or a folder with an OCI layout. A context manager."""

    def __init__(self, path: Path) -> None:
        """Read its manifest.

        Raises:
            InputError: it is no image archive, or its image is for other processors.
        """
        self._path = path
        self._files = ExitStack()
        try:
            self._tar = None if path.is_dir() else self._opened(path.open("rb"), _Left())
            config, self._layers = self._manifest()
            if len(self._layers) > _LAYERS_MAX:
                raise ValueError(
                    f"it has {len(self._layers)} layers, but at most {_LAYERS_MAX} are allowed: "
                    "build the image with fewer layers"
                )
            self.digest = config.digest
            """Of the image's configuration, which contains those of all layers."""
            self.config: dict[str, Any] = json.loads(self._document(config))
            self._contents = _content_digests(self.config, len(self._layers))
            machine = self.config["architecture"]
            _require_settings(self.config.get("config") or {})
        except OSError as error:
            self._files.close()
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        except _MALFORMED as error:
            self._files.close()
            raise InputError(
                f"{path} is neither an OCI archive nor a file of `docker save`: {error}"
            ) from error
        if machine != _this_machine():
            self._files.close()
            raise InputError(
                f"{path} is an image for {machine}, but this machine is {_this_machine()}"
            )

    def __enter__(self) -> ImageArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def unpack(self, folder: Path) -> None:
        """Write the merged layers into an empty folder, with the archive's owners if root does it.

        Raises:
            InputError: the content does not match its digest, or a path is not below the root.
        """
        try:
            packed, unpacked = _Left(), _Left()
            layers = []
            for blob, digest in zip(self._layers, self._contents, strict=True):
                layer = self._opened(self._copied(blob, folder.parent, packed), unpacked)
                _require_content(layer, blob.name, digest)
                layers.append(layer)
            _write(_merged(layers, unpacked), layers, folder)
        except (OSError, *_MALFORMED) as error:
            raise InputError(f"cannot unpack the image {self._path}: {error}") from error

    def _manifest(self) -> tuple[_Blob, list[_Blob]]:
        if self._tar is not None and "manifest.json" in self._tar.getnames():
            (entry,) = json.loads(self._document(_Blob("manifest.json", "")))
            content = self._document(_Blob(entry["Config"], ""))
            config = _Blob(entry["Config"], f"sha256:{sha256(content).hexdigest()}")
            return config, [_Blob(name, "") for name in entry["Layers"]]
        document = json.loads(self._document(_Blob("index.json", "")))
        while "manifests" in document:
            document = json.loads(self._document(_for_this_machine(document["manifests"])))
        return _blob(document["config"]), [_blob(layer) for layer in document["layers"]]

    def _document(self, blob: _Blob) -> bytes:
        with self._open(blob) as file:
            content = file.read(_DOCUMENT_BYTES_MAX)
        if blob.digest and f"sha256:{sha256(content).hexdigest()}" != blob.digest:
            raise ValueError(f"the content of {blob.name} does not match its digest")
        return content

    def _open(self, blob: _Blob) -> IO[bytes]:
        if self._tar is None:
            return _open_file(self._path / blob.name)
        file = self._tar.extractfile(blob.name)
        if file is None:
            raise KeyError(f"{blob.name} is not a file")
        return file

    def _opened(self, file: IO[bytes], left: _Left) -> tarfile.TarFile:
        """Open a tar, and close it and its file with this archive."""
        self._files.enter_context(file)
        tar = tarfile.open(fileobj=file, tarinfo=BoundedEntry)  # noqa: SIM115  # The stack closes it.
        self._files.enter_context(tar)
        _require_small(tar, left)
        return tar

    def _copied(self, blob: _Blob, scratch: Path, left: _Left) -> IO[bytes]:
        """Return a layer as a separate file, after a check of its digest."""
        file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115  # The stack closes it.
        copy = self._files.enter_context(cast("IO[bytes]", file))
        digest = sha256()
        with self._open(blob) as source:
            while piece := source.read(_PIECE_BYTES):
                left.take(len(piece))
                digest.update(piece)
                copy.write(piece)
        if blob.digest and f"sha256:{digest.hexdigest()}" != blob.digest:
            raise ValueError(f"the content of {blob.name} does not match its digest")
        copy.seek(0)
        return copy


def _open_file(path: Path) -> IO[bytes]:
    """Open a regular file; another one could keep this process waiting. Raises OSError, and
    ValueError for other files."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError(f"{path.name} is not a regular file")
    return file


def _require_small(tar: tarfile.TarFile, left: _Left) -> None:
    """Read the headers of a tar, and stop at the first one that exceeds a limit."""
    count_headers(tar, left.header_bytes)
    for entry in tar:
        left.take(entry.size, entries=1)
        if min(entry.size, entry.uid, entry.gid) < 0:
            raise ValueError(f"{entry.name!r} has a negative size, user or group")
    left.header_bytes = count_headers(tar)


def _content_digests(config: dict[str, Any], layers: int) -> list[str]:
    """Return the digest of each layer, not compressed, as a configuration states them; raises
    ValueError."""
    digests: list[str] = config["rootfs"]["diff_ids"]
    if len(digests) != layers:
        raise ValueError(f"it has {layers} layers, but its configuration states {len(digests)}")
    return digests


def _require_content(tar: tarfile.TarFile, name: str, expected: str) -> None:
    """Check the content of a layer that is read to its end.

    The digest of an image covers only its configuration. Without this check, an archive with the
    configuration of another image would be unpacked as that image.
    """
    stream, digest, size_bytes = cast("IO[bytes]", tar.fileobj), sha256(), 0
    stream.seek(0)
    while piece := stream.read(_PIECE_BYTES):
        digest.update(piece)
        size_bytes += len(piece)
        if size_bytes > tar.offset + _PADDING_BYTES_MAX:
            raise ValueError(f"{name} continues after its last file")
    if f"sha256:{digest.hexdigest()}" != expected:
        raise ValueError(f"the content of {name} is not that of the image's configuration")


def _require_settings(settings: dict[str, Any]) -> None:
    """Check the types of the settings that engines read; raises ValueError."""
    kinds = {"Env": list, "Entrypoint": list, "Cmd": list, "Volumes": dict, "WorkingDir": str}
    for name, kind in kinds.items():
        value = settings.get(name) or kind()
        if not isinstance(value, kind) or not all(isinstance(word, str) for word in value):
            raise ValueError(f"{name} has a wrong type")


def _this_machine() -> str:
    return _MACHINES.get(platform.machine(), platform.machine())


def _for_this_machine(manifests: list[dict[str, Any]]) -> _Blob:
    fitting = [
        entry
        for entry in manifests
        if entry.get("platform", {}).get("architecture", _this_machine()) == _this_machine()
    ]
    return _blob((fitting or manifests)[0])


def _blob(descriptor: dict[str, Any]) -> _Blob:
    digest = _DIGEST.fullmatch(descriptor["digest"])
    if digest is None:
        raise ValueError(f"unknown digest {descriptor['digest']!r}")
    return _Blob(f"blobs/sha256/{digest[1]}", digest[0])


@dataclass(slots=True)
class _Node:
    """One path of the merged image."""

    layer: int = -1
    entry: tarfile.TarInfo | None = None
    """None for a folder that no layer lists."""
    children: dict[str, _Node] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        return self.entry is None or self.entry.isdir()


def _merged(layers: list[tarfile.TarFile], left: _Left) -> _Node:
    """Return the tree of all layers, without the files that a later layer removes.

    Raises:
        ValueError: the folders that no layer lists, or the paths, exceed a limit.
    """
    top = _Node()
    for number, layer in enumerate(layers):
        # A whiteout removes files of lower layers only.
        for entry in layer.getmembers():
            if _WHITEOUT in entry.name and _is_whiteout(parts := _parts(entry.name)):
                _remove(top, parts)
        # The parts of paths are not kept: those of a million deep paths take a gigabyte.
        for entry in layer.getmembers():
            parts = _parts(entry.name)
            if parts and not _is_whiteout(parts):
                _add(top, parts, _Node(number, entry), left)
    return top


def _is_whiteout(parts: tuple[str, ...]) -> bool:
    return bool(parts) and parts[-1].startswith(_WHITEOUT)


def _parts(name: str) -> tuple[str, ...]:
    parts = PurePosixPath("/", name).parts[1:]
    if ".." in parts:
        raise ValueError(f"the path {name!r} leaves the image")
    return parts


def _remove(top: _Node, parts: tuple[str, ...]) -> None:
    folder: _Node | None = top
    for part in parts[:-1]:
        folder = folder.children.get(part) if folder else None
    if folder is None:
        return
    if parts[-1] == _OPAQUE:
        folder.children.clear()
    else:
        folder.children.pop(parts[-1].removeprefix(_WHITEOUT), None)


def _add(top: _Node, parts: tuple[str, ...], node: _Node, left: _Left) -> None:
    folder, path_bytes = top, 0
    for part in parts[:-1]:
        path_bytes += len(os.fsencode(part)) + 1
        if part not in folder.children:
            left.take(0, entries=1, path_bytes=path_bytes)
            folder.children[part] = _Node()
        folder = folder.children[part]
        if not folder.is_folder:
            raise ValueError(f"/{'/'.join(parts)} is below a path that is no folder")
    # Its entry was counted when it was read.
    left.take(0, path_bytes=path_bytes + len(os.fsencode(parts[-1])))
    replaced = folder.children.get(parts[-1])
    if replaced is not None and replaced.is_folder and node.is_folder:
        node.children = replaced.children
    folder.children[parts[-1]] = node


def _write(top: _Node, layers: list[tarfile.TarFile], root: Path) -> None:
    folders, files, links = list[tuple[Path, _Node]](), list[tuple[Path, _Node]](), []
    for path, node in _walk(top, root):
        if node.is_folder:
            path.mkdir(mode=0o700)
            folders.append((path, node))
        elif node.entry is not None and node.entry.isreg():
            files.append((path, node))
        elif node.entry is not None and (node.entry.issym() or node.entry.islnk()):
            links.append((path, node))
    copied_bytes = 0
    # Layers can be compressed, so they are read forwards.
    files.sort(key=lambda file: (file[1].layer, file[1].entry.offset_data if file[1].entry else 0))
    for path, node in files:
        _copy(node, layers, path)
    for path, node in sorted(
        links, key=lambda link: link[1].entry is None or link[1].entry.issym()
    ):
        _link(path, node, layers, top, root)
        # A hard link becomes a copy if a later layer replaced its target.
        status = path.lstat()
        copied_bytes += status.st_size if status.st_nlink == 1 else 0
        if copied_bytes > ROOT_BYTES_MAX:
            raise ValueError(
                f"the copies of its hard links have more than {ROOT_BYTES_MAX >> 30} GiB"
            )
    for path, node in reversed(folders):
        _describe(path, node.entry)
    root.chmod(0o755)


def _walk(top: _Node, root: Path) -> Iterator[tuple[Path, _Node]]:
    waiting = [(root, top)]
    while waiting:
        folder, node = waiting.pop()
        for name, child in node.children.items():
            yield folder / name, child
            if child.is_folder:
                waiting.append((folder / name, child))


def _copy(node: _Node, layers: list[tarfile.TarFile], path: Path) -> None:
    assert node.entry is not None
    content = layers[node.layer].extractfile(node.entry)
    if content is None:
        raise ValueError(f"{node.entry.name} has no content")
    with path.open("xb") as target:
        shutil.copyfileobj(content, target, _PIECE_BYTES)
    _describe(path, node.entry)


def _link(path: Path, node: _Node, layers: list[tarfile.TarFile], top: _Node, root: Path) -> None:
    assert node.entry is not None
    if node.entry.issym():
        path.symlink_to(node.entry.linkname)
        return
    parts = _parts(node.entry.linkname)
    target: _Node | None = top
    for part in parts:
        target = target.children.get(part) if target else None
    if target is not None and target.layer == node.layer and target.entry and target.entry.isreg():
        os.link(root.joinpath(*parts), path)
    else:
        _copy(node, layers, path)


def _describe(path: Path, entry: tarfile.TarInfo | None) -> None:
    """Set owner, mode and time of a path; Python compares the times of compiled modules.

    An ordinary user owns all files, and can always read and remove them.
    """
    if entry is None:
        path.chmod(0o755)
        return
    mode = entry.mode & _MODE
    if os.geteuid() == 0:
        owner, group = (number if number <= _USER_MAX else 0 for number in (entry.uid, entry.gid))
        os.chown(path, owner, group)
    else:
        mode |= _OWN_FOLDER if entry.isdir() else _OWN_FILE
    path.chmod(mode)
    os.utime(path, (entry.mtime, entry.mtime))
