"""Builds images from Debian packages, without a container registry.

mmdebstrap unpacks the packages without installing them, so an image has no package manager and none
of its data. The packages come from the mirror that this machine's apt uses.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.build import called_latest, import_image

SUITE = "bookworm"
USER = "nobody"

_FILES = {
    "etc/passwd": f"{USER}:x:65534:65534:{USER}:/tmp:/sbin/nologin\n",
    "etc/group": "nogroup:x:65534:\n",
}
_SETTINGS = ("ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV LANG=C.UTF-8")
_TIMEOUT_S = 900
_INSTALLED = (
    *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"),
    *("--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=force-unsafe-io"),
    '--customize-hook=ln -s python3 "$1/usr/bin/python"',
)
"""Options of an image with installed packages: without texts, and with the command ``python``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageImage:
    """The packages of an image, and the files that it keeps."""

    repository: str
    packages: tuple[str, ...]
    """Their dependencies are added."""
    kept: tuple[str, ...]
    """Prefixes of paths."""
    dropped: tuple[str, ...] = ()
    """Prefixes of paths to drop among the kept ones."""
    dropped_parts: frozenset[str] = frozenset()
    """Names of folders to drop at any depth."""
    suite: str = SUITE
    """Release of Debian."""

    @property
    def reference(self) -> str:
        """The image's reference; its tag is a digest of the recipe."""
        parts = sorted(self.dropped_parts)
        recipe = (self.suite, self.packages, self.kept, self.dropped, parts, _FILES, _SETTINGS)
        return f"{self.repository}:{sha256(repr(recipe).encode()).hexdigest()[:16]}"

    def holds(self, path: str) -> bool:
        """Return whether the image keeps a path of a package."""
        if path.startswith(self.dropped) or self.dropped_parts & set(path.split("/")):
            return False
        return path.startswith(self.kept)


def build_of_packages(image: PackageImage, daemon: Daemon) -> None:
    """Build an image.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the packages cannot be downloaded.
    """
    tool = _mmdebstrap(image.repository)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as kept:
        packages = Path(folder, "packages.tar")
        _unpack(tool, image.packages, packages, suite=image.suite)
        _keep(image, packages, kept)
        kept.seek(0)
        import_image(daemon, kept, image.reference, _SETTINGS)


def build_base(image: PackageImage, progress: Callable[[str], None], daemon: Daemon) -> str:
    """Build a base image of agents if it does not exist, and return its reference.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the daemon or the package manager fails.
    """
    if daemon.image(image.reference) is None:
        progress(f"building the image {image.reference} from Debian packages")
        build_of_packages(image, daemon)
    return called_latest(daemon, image.reference)


def build_installed(
    reference: str, packages: tuple[str, ...], daemon: Daemon, options: Iterable[str] = ()
) -> None:
    """Build an image in which the packages are installed, with a package manager.

    Args:
        reference: of the new image.
        packages: to install, with their dependencies.
        daemon: to import with.
        options: further options of mmdebstrap.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the packages cannot be downloaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "root.tar")
        _unpack(_mmdebstrap(reference), packages, archive, "minbase", *_INSTALLED, *options)
        with archive.open("rb") as content:
            import_image(daemon, content, reference, ())


def _mmdebstrap(image: str) -> str:
    tool = shutil.which("mmdebstrap")
    if tool is None:
        raise InputError(
            f"building {image} from Debian packages needs mmdebstrap; install it "
            "(Debian: apt-get install mmdebstrap)"
        )
    return tool


def _unpack(
    tool: str,
    packages: tuple[str, ...],
    archive: Path,
    variant: str = "extract",
    *options: str,
    suite: str = SUITE,
) -> None:
    command = [
        tool,
        "--quiet",
        f"--variant={variant}",
        f"--include={','.join(packages)}",
        *options,
        suite,
        str(archive),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S, text=True)
    except subprocess.CalledProcessError as error:
        errors = [line for line in error.stderr.splitlines() if line.startswith("E:")] or [""]
        raise InfraError(f"mmdebstrap could not unpack Debian packages: {errors[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"mmdebstrap did not end within {_TIMEOUT_S} s") from error


def _keep(image: PackageImage, packages: Path, kept: IO[bytes]) -> None:
    with tarfile.open(packages) as source, tarfile.open(fileobj=kept, mode="w") as target:
        for entry in source:
            if image.holds(entry.name.removeprefix("./")):
                entry.uid = entry.gid = 0
                target.addfile(entry, source.extractfile(entry) if entry.isreg() else None)
        for name, text in _FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            target.addfile(entry, io.BytesIO(text.encode()))
