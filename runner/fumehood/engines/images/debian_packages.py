"""Root file systems out of Debian packages, for where no registry answers.

The packages are unpacked, not installed: what runs inside is what was asked for, so there is no package
manager and none of its data. Where they come from is the business of this machine's apt.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.build import import_image

SUITE = "bookworm"

_FILES = {
    "etc/passwd": "nobody:x:65534:65534:nobody:/tmp:/sbin/nologin\n",
    "etc/group": "nogroup:x:65534:\n",
}
_SETTINGS = ("ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV LANG=C.UTF-8")
_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageImage:
    """What is unpacked, and what is kept of it."""

    repository: str
    packages: tuple[str, ...]
    """With all that they depend on."""
    kept: tuple[str, ...]
    """Beginnings of paths."""
    dropped: tuple[str, ...] = ()
    """Beginnings of paths, though kept."""
    dropped_parts: frozenset[str] = frozenset()
    """Names of folders that are dropped wherever they lie."""

    @property
    def reference(self) -> str:
        """Named by how it is made."""
        parts = sorted(self.dropped_parts)
        recipe = (SUITE, self.packages, self.kept, self.dropped, parts, _FILES, _SETTINGS)
        return f"{self.repository}:{sha256(repr(recipe).encode()).hexdigest()[:16]}"

    def holds(self, path: str) -> bool:
        """Tell whether a path of a package is kept."""
        if path.startswith(self.dropped) or self.dropped_parts & set(path.split("/")):
            return False
        return path.startswith(self.kept)


def build_of_packages(image: PackageImage, daemon: Daemon) -> None:
    """Make an image.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the packages cannot be had.
    """
    tool = shutil.which("mmdebstrap")
    if tool is None:
        raise InputError(
            f"{image.repository} is made of Debian packages, which takes mmdebstrap; install it "
            "(Debian: apt-get install mmdebstrap)"
        )
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as chosen:
        packages = Path(folder, "packages.tar")
        _unpack(tool, image.packages, packages)
        _choose(image, packages, chosen)
        chosen.seek(0)
        import_image(daemon, chosen, image.reference, _SETTINGS)


def _unpack(tool: str, packages: tuple[str, ...], archive: Path) -> None:
    command = [
        tool,
        "--quiet",
        "--variant=extract",
        f"--include={','.join(packages)}",
        SUITE,
        str(archive),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S, text=True)
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.startswith("E:")] or [""]
        raise InfraError(f"mmdebstrap could not unpack Debian packages: {said[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"mmdebstrap did not end within {_TIMEOUT_S} s") from error


def _choose(image: PackageImage, packages: Path, chosen: IO[bytes]) -> None:
    with tarfile.open(packages) as source, tarfile.open(fileobj=chosen, mode="w") as target:
        for entry in source:
            if image.holds(entry.name.removeprefix("./")):
                entry.uid = entry.gid = 0
                target.addfile(entry, source.extractfile(entry) if entry.isreg() else None)
        for name, text in _FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            target.addfile(entry, io.BytesIO(text.encode()))
