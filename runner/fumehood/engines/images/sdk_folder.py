"""The SDK and its two libraries as one folder: all that an agent in a box can import besides Python itself.

Ours are copied from where this Python finds them. The libraries are copied too where this Python is like
the one in the box, and fetched for it by pip where it is not.
"""

from __future__ import annotations

import compileall
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePath
from py_compile import PycInvalidationMode

from fumehood.core.errors import InfraError, InputError

OWN_PACKAGES = ("fumehood_agent", "fumehood")
"""Import names of what we bring: the SDK and the generated messages."""
LIBRARIES = ("grpcio", "protobuf", "typing_extensions")
"""Distributions that the SDK needs."""
_AGENT_MESSAGES = "tool_pb2"
"""Of the generated modules an agent needs these; the others speak of what happens outside."""
_PIP_TIMEOUT_S = 300


def library_pins() -> tuple[str, ...]:
    """Return the libraries as requirements, in the versions that are installed here.

    Raises:
        InputError: one of them is not.
    """
    try:
        return tuple(f"{name}=={distribution(name).version}" for name in LIBRARIES)
    except PackageNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed here; install this project again"
        ) from error


def sdk_digest() -> str:
    """Return a hex digest of all that would be laid out."""
    digest = sha256()
    for inside, file in sorted(_own_files()):
        digest.update(f"{inside}\0".encode() + sha256(file.read_bytes()).digest())
    digest.update("\0".join(library_pins()).encode())
    return digest.hexdigest()


@cache
def installed_sdk() -> Path:
    """Return a folder with the SDK for this very Python, compiled; made once and kept in the user's cache."""
    python = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}-{sys.version}"
    name = sha256(f"{sdk_digest()}\0{python}".encode()).hexdigest()[:16]
    folder = _cache_folder() / name
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        made = Path(unfinished, name)
        _copy_own(made)
        _copy_libraries(made)
        # Never compared with its source again: nothing in a box can change either.
        compileall.compile_dir(made, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # Else somebody else was faster.
                raise
    return folder


def lay_out_sdk(folder: Path, *, python: str, machine: str) -> None:
    """Fill ``folder`` with the SDK for the Python of an image, as sources.

    Args:
        folder: a new folder.
        python: version such as ``"3.11"``.
        machine: as ``platform.machine()`` says it, such as ``"x86_64"``.

    Raises:
        InputError: the libraries must be fetched, and there is no pip.
        InfraError: pip fails.
    """
    _copy_own(folder)
    here = (
        f"{sys.version_info.major}.{sys.version_info.minor}",
        platform.machine(),
        platform.libc_ver()[0],
    )
    if here == (python, machine, "glibc"):
        _copy_libraries(folder)
    else:
        _pip_install(folder, python, machine)


def _own_files() -> Iterator[tuple[str, Path]]:
    for package in OWN_PACKAGES:
        found = find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise InputError(
                f"the package {package} is not installed here; install this project again"
            )
        root = Path(next(iter(found.submodule_search_locations)))
        for file in (*root.rglob("*.py"), *root.rglob("*.md")):
            if package != "fumehood" or file.name.startswith(_AGENT_MESSAGES):
                yield str(PurePath(package, file.relative_to(root))), file


def _copy_own(folder: Path) -> None:
    for inside, file in _own_files():
        _copy(file, folder / inside)


def _copy_libraries(folder: Path) -> None:
    for name in LIBRARIES:
        found = distribution(name)
        for file in found.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                _copy(Path(str(found.locate_file(file))), folder / file)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _pip_install(folder: Path, python: str, machine: str) -> None:
    if find_spec("pip") is None:
        raise InputError(
            f"fetching libraries for Python {python} takes pip; install it beside this project"
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"]
    command += ["--target", str(folder), "--only-binary", ":all:", "--python-version", python]
    for platform_tag in (f"manylinux_2_28_{machine}", f"manylinux2014_{machine}"):
        command += ["--platform", platform_tag]
    try:
        subprocess.run(
            [*command, *library_pins()],
            check=True,
            capture_output=True,
            timeout=_PIP_TIMEOUT_S,
            text=True,
        )
    except subprocess.CalledProcessError as error:
        raise InfraError(f"pip: {error.stderr.strip().rpartition(chr(10))[2]}") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"pip did not end within {_PIP_TIMEOUT_S} s") from error


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "fumehood" / "sdk"
