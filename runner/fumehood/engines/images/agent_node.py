"""The image ``agent-node``: Node, the TypeScript SDK and the compiler, nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.docker_daemon import Daemon
from fumehood.engines.images.build import build, tag
from fumehood.engines.images.context import write_context
from fumehood.engines.images.debian_packages import PackageImage, build_of_packages
from fumehood.engines.images.node_modules import ROOT, lay_out_node_modules, sdk_digest

NAME = "fumehood/agent-node"
"""Repository; ``:latest`` is the one asked for last, for Dockerfiles to begin from."""
DOCKERFILE = ROOT / "sandbox_images" / "agent-node" / "Dockerfile"

_BASE = PackageImage(
    repository="fumehood/debian-node",
    packages=("nodejs",),
    # Debian's Node reads parts of its own library from usr/share/nodejs.
    kept=("usr/bin/node", "usr/lib/", "usr/share/nodejs/", "lib/", "lib64/", "etc/ld.so.conf.d/"),
    dropped=("usr/lib/dpkg/", "lib/systemd/", "usr/share/nodejs/@types/"),
    dropped_parts=frozenset({"gconv", "perl5", "krb5", "sasl2", "engines-3"}),
)


def build_agent_node(progress: Callable[[str], None], daemon: Daemon) -> str:
    """Make sure of the image, and return its reference.

    Args:
        progress: told, in one line, of what takes long.
        daemon: to build with.

    Raises:
        InputError: mmdebstrap or npm is not installed, or this is no checkout.
        InfraError: the daemon or a package manager fails.
    """
    reference = current_reference()
    if daemon.image(reference) is None:
        progress(f"building the image {reference}")
        if daemon.image(_BASE.reference) is None:
            build_of_packages(_BASE, daemon)
        _build(reference, daemon)
    if daemon.image(reference) != daemon.image(f"{NAME}:latest"):
        tag(daemon, reference, f"{NAME}:latest")
    return reference


def current_reference() -> str:
    """Return what the image is called when it is made of what is here now.

    Raises:
        InputError: this is no checkout.
    """
    try:
        dockerfile = DOCKERFILE.read_text("utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename} is missing; images are built from a checkout"
        ) from error
    recipe = f"{sdk_digest()} {dockerfile} {_BASE.reference}"
    return f"{NAME}:{sha256(recipe.encode()).hexdigest()[:16]}"


def _build(reference: str, daemon: Daemon) -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as context:
        lay_out_node_modules(Path(folder, "node_modules"), compiler=True)
        shutil.copy(DOCKERFILE, folder)
        write_context(Path(folder), context)
        build(daemon, context, reference, {"BASE": _BASE.reference}, network=False)
