"""A base for images out of Debian packages, for where no registry answers.

The packages are unpacked, not installed: what runs inside is Python alone, so there is no shell, no package
manager and none of their data. Where they come from is the business of this machine's apt.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import IO

from runner.core.errors import InfraError, InputError
from runner.engines.docker_daemon import Daemon
from runner.engines.images.build import import_image

SUITE = "bookworm"
PACKAGES = ("python3", "libstdc++6")
"""libstdc++6 is what gRPC's library is linked with."""

_KEPT = ("usr/bin/python3", "usr/lib/", "lib/", "lib64/", "etc/ld.so.conf.d/")
_DROPPED = ("usr/lib/dpkg/", "usr/lib/python3/", "usr/lib/python3.11/sitecustomize.py", "lib/systemd/")
"""What serves package managers, and a hook of Debian's for reporting its bugs."""
_DROPPED_PARTS = frozenset({"gconv", "lib2to3", "pydoc_data", "perl5", "krb5", "sasl2", "engines-3"})
"""Folders that no agent misses: conversions of old encodings, a tool, its help, other people's plug-ins."""
_FILES = {
    "etc/passwd": "nobody:x:65534:65534:nobody:/tmp:/sbin/nologin\n",
    "etc/group": "nogroup:x:65534:\n",
}
_SETTINGS = ("ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV LANG=C.UTF-8")
_TIMEOUT_S = 900

_RECIPE = repr((SUITE, PACKAGES, _KEPT, _DROPPED, sorted(_DROPPED_PARTS), _FILES, _SETTINGS))
REFERENCE = f"glovebox/debian-python:{sha256(_RECIPE.encode()).hexdigest()[:16]}"
"""Named by how it is made."""


def build_base(daemon: Daemon) -> None:
    """Make the base.

    Raises:
        InputError: mmdebstrap is not installed.
        InfraError: the packages cannot be had.
    """
    tool = shutil.which("mmdebstrap")
    if tool is None:
        raise InputError(
            "no registry answers, and building a base takes mmdebstrap; install it "
            "(Debian: apt-get install mmdebstrap)"
        )
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as chosen:
        packages = Path(folder, "packages.tar")
        _unpack(tool, packages)
        _choose(packages, chosen)
        chosen.seek(0)
        import_image(daemon, chosen, REFERENCE, _SETTINGS)


def _unpack(tool: str, archive: Path) -> None:
    command = [tool, "--quiet", "--variant=extract", f"--include={','.join(PACKAGES)}", SUITE, str(archive)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S, text=True)
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.startswith("E:")] or [""]
        raise InfraError(f"mmdebstrap could not unpack Debian packages: {said[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"mmdebstrap did not end within {_TIMEOUT_S} s") from error


def _choose(packages: Path, chosen: IO[bytes]) -> None:
    with tarfile.open(packages) as source, tarfile.open(fileobj=chosen, mode="w") as target:
        for entry in source:
            if _is_kept(entry.name.removeprefix("./")):
                entry.uid = entry.gid = 0
                target.addfile(entry, source.extractfile(entry) if entry.isreg() else None)
        for name, text in _FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            target.addfile(entry, io.BytesIO(text.encode()))


def _is_kept(name: str) -> bool:
    if name.startswith(_DROPPED) or _DROPPED_PARTS & set(name.split("/")):
        return False
    return name.startswith(_KEPT)
