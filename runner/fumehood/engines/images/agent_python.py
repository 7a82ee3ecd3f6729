"""Builds the image ``agent-python``: Python and the SDK.

The tag is a digest of the sources, so an unchanged image is not built again. The base is the
official slim image; if no registry answers, it is made from Debian packages.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.build import build, called_latest, pull, write_context
from fumehood.engines.images.debian_packages import PackageImage, build_of_packages
from fumehood.engines.images.sdk_folder import lay_out_sdk, sdk_digest
from fumehood.engines.images.sources import read_source

NAME = "fumehood/agent-python"
"""Repository. ``:latest`` is the tag that Dockerfiles of agents start from."""
PYTHON = "3.11"
"""Version in every base."""
_FOLDER = "sandbox_images/agent-python"


@dataclass(frozen=True, slots=True)
class _Base:
    reference: str
    packages_folder: str
    """The folder from which its Python imports added packages."""


_DEBIAN_PYTHON = PackageImage(
    repository="fumehood/debian-python",
    # The library of gRPC is linked with libstdc++6.
    packages=("python3", "libstdc++6"),
    kept=("usr/bin/python3", "usr/lib/", "lib/", "lib64/", "etc/ld.so.conf.d/"),
    # Files of package managers, and Debian's hook for reporting bugs.
    dropped=(
        "usr/lib/dpkg/",
        "usr/lib/python3/",
        "usr/lib/python3.11/sitecustomize.py",
        "lib/systemd/",
    ),
    # Conversions of old encodings, lib2to3, the help texts of pydoc, plug-ins of other libraries.
    dropped_parts=frozenset(
        {"gconv", "lib2to3", "pydoc_data", "perl5", "krb5", "sasl2", "engines-3"}
    ),
)

_DEBIAN = _Base(_DEBIAN_PYTHON.reference, f"/usr/local/lib/python{PYTHON}/dist-packages")


def build_agent_python(progress: Callable[[str], None], daemon: Daemon | None = None) -> str:
    """Build the image, by default with this machine's daemon, if it does not exist; return its
    name.

    Raises:
        InputError: the SDK or mmdebstrap is not installed.
        InfraError: the daemon or the package manager fails.
    """
    with nullcontext(daemon) if daemon else closing(Daemon()) as builder:
        return _build(progress, builder)


def current_references() -> frozenset[str]:
    """Return the references of the images that the present sources give, one per base."""
    recipe = _recipe()
    return frozenset(_reference(recipe, base) for base in (_slim(), _DEBIAN))


def _build(progress: Callable[[str], None], daemon: Daemon) -> str:
    recipe = _recipe()
    for base in (_slim(), _DEBIAN):
        if daemon.image(_reference(recipe, base)):
            return called_latest(daemon, _reference(recipe, base))
    base = _find_base(progress, daemon)
    reference = _reference(recipe, base)
    progress(f"building the image {reference}")
    arguments = {"BASE": base.reference, "PACKAGES": base.packages_folder}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as context:
        lay_out_sdk(Path(folder, "sdk"), python=PYTHON, machine=daemon.info()["Architecture"])
        Path(folder, "Dockerfile").write_text(_dockerfile(), "utf-8")
        write_context(Path(folder), context)
        build(daemon, context, reference, arguments, network=False)
    return called_latest(daemon, reference)


def _find_base(progress: Callable[[str], None], daemon: Daemon) -> _Base:
    slim = _slim()
    for base in (slim, _DEBIAN):
        if daemon.image(base.reference):
            return base
    progress(f"fetching the image {slim.reference.partition('@')[0]}")
    if pull(daemon, slim.reference):
        return slim
    progress("no registry answers; building a base from Debian packages, which takes half a minute")
    build_of_packages(_DEBIAN_PYTHON, daemon)
    return _DEBIAN


def _slim() -> _Base:
    """Return the official base, pinned in the Dockerfile."""
    base = re.search(r"^ARG BASE=(\S+)$", _dockerfile(), re.MULTILINE)
    assert base is not None
    return _Base(base[1], f"/usr/local/lib/python{PYTHON}/site-packages")


def _recipe() -> str:
    return sha256(f"{sdk_digest()}\0{_dockerfile()}".encode()).hexdigest()


def _reference(recipe: str, base: _Base) -> str:
    return f"{NAME}:{sha256(f'{recipe} {base}'.encode()).hexdigest()[:16]}"


def _dockerfile() -> str:
    return read_source(_FOLDER, "Dockerfile")
