"""The image ``agent-python``: Python, the SDK, nothing else.

Its tag is the digest of all that goes in, so what has not changed is not built again. The base is the
official slim image where a registry answers, and is made of Debian packages where none does.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.docker_daemon import Daemon
from fumehood.engines.images import debian_base
from fumehood.engines.images.build import build, pull, tag
from fumehood.engines.images.context import write_context
from fumehood.engines.images.sdk_folder import lay_out_sdk, sdk_digest

NAME = "fumehood/agent-python"
"""Repository; ``:latest`` is the one asked for last, for Dockerfiles to begin from."""
PYTHON = "3.11"
"""Version in every base."""
FOLDER = Path(__file__).parents[4] / "sandbox_images" / "agent-python"


@dataclass(frozen=True, slots=True)
class _Base:
    reference: str
    packages_folder: str
    """Where its Python looks for what was added."""


_DEBIAN = _Base(debian_base.REFERENCE, f"/usr/local/lib/python{PYTHON}/dist-packages")


def build_agent_python(progress: Callable[[str], None], daemon: Daemon | None = None) -> str:
    """Make sure of the image, and return its reference.

    Args:
        progress: told, in one line, of what takes long.
        daemon: to build with; None means this machine's.

    Raises:
        InputError: there is no base, no SDK, or no Dockerfile here.
        InfraError: the daemon or the package manager fails.
    """
    if daemon is not None:
        return _build(progress, daemon)
    daemon = Daemon()
    try:
        return _build(progress, daemon)
    finally:
        daemon.close()


def current_references() -> frozenset[str]:
    """Return what the image is called when it is made of what is here now, on either base.

    Raises:
        InputError: there is no SDK, or no Dockerfile here.
    """
    recipe = _recipe()
    return frozenset(_reference(recipe, base) for base in (_slim(), _DEBIAN))


def _build(progress: Callable[[str], None], daemon: Daemon) -> str:
    recipe = _recipe()
    for base in (_slim(), _DEBIAN):
        if daemon.image(_reference(recipe, base)):
            return _call_latest(daemon, _reference(recipe, base))
    base = _find_base(progress, daemon)
    reference = _reference(recipe, base)
    progress(f"building the image {reference}")
    arguments = {"BASE": base.reference, "PACKAGES": base.packages_folder}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as context:
        lay_out_sdk(Path(folder, "sdk"), python=PYTHON, machine=daemon.info()["Architecture"])
        shutil.copy(FOLDER / "Dockerfile", folder)
        write_context(Path(folder), context)
        build(daemon, context, reference, arguments, network=False)
    return _call_latest(daemon, reference)


def _call_latest(daemon: Daemon, reference: str) -> str:
    # Another checkout may have built another one since.
    if daemon.image(reference) != daemon.image(f"{NAME}:latest"):
        tag(daemon, reference, f"{NAME}:latest")
    return reference


def _find_base(progress: Callable[[str], None], daemon: Daemon) -> _Base:
    slim = _slim()
    for base in (slim, _DEBIAN):
        if daemon.image(base.reference):
            return base
    progress(f"fetching the image {slim.reference.partition('@')[0]}")
    if pull(daemon, slim.reference):
        return slim
    progress("no registry answers; building a base of Debian packages, which takes half a minute")
    debian_base.build_base(daemon)
    return _DEBIAN


def _slim() -> _Base:
    """Return the official base, as the Dockerfile names and pins it."""
    found = re.search(r"^ARG BASE=(\S+)$", _dockerfile(), re.MULTILINE)
    assert found is not None
    return _Base(found[1], f"/usr/local/lib/python{PYTHON}/site-packages")


def _recipe() -> str:
    return sha256(f"{sdk_digest()}\0{_dockerfile()}".encode()).hexdigest()


def _reference(recipe: str, base: _Base) -> str:
    return f"{NAME}:{sha256(f'{recipe} {base}'.encode()).hexdigest()[:16]}"


def _dockerfile() -> str:
    try:
        return (FOLDER / "Dockerfile").read_text("utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{FOLDER} is missing; images are built from a checkout of this project"
        ) from error
