"""Copies the Python SDK and its dependencies into a folder that a box can import.

The SDK comes from this Python's installation. The dependencies are copied too if the box has the
same Python version and machine; otherwise pip fetches them.
"""

from __future__ import annotations

import compileall
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
from fumehood.engines.images.sources import cache_folder

PACKAGE = "fumehood_agent"
"""Import name of the SDK."""
LIBRARIES = ("grpcio", "protobuf", "typing_extensions")
"""Distributions that the SDK depends on."""
_GENERATED = "_proto/v1"
_AGENT_MESSAGES = ("tool_pb2", "__init__")
"""Prefix of the generated modules that an agent needs. The others define the host's control
messages."""
_PIP_TIMEOUT_S = 300
_FORM = "compiled without paths of the host"
"""Changes if the content of :func:`installed_sdk` changes for other reasons than its sources."""


def library_pins() -> tuple[str, ...]:
    """Return the dependencies as pip requirements, pinned to the installed versions.

    Raises:
        InputError: one of them is not installed.
    """
    try:
        return tuple(f"{name}=={distribution(name).version}" for name in LIBRARIES)
    except PackageNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install fumehood again") from error


def sdk_digest() -> str:
    """Return a hex digest of the SDK's files and the pinned dependencies."""
    digest = sha256()
    for inside, file in sorted(_own_files()):
        digest.update(f"{inside}\0".encode() + sha256(file.read_bytes()).digest())
    digest.update("\0".join(library_pins()).encode())
    return digest.hexdigest()


@cache
def installed_sdk() -> Path:
    """Return a folder in the user's cache with the SDK, compiled for this Python."""
    python = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}-{sys.version}"
    name = sha256(f"{sdk_digest()}\0{python}\0{_FORM}".encode()).hexdigest()[:16]
    folder = cache_folder("sdk") / name
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        new = Path(unfinished, name)
        _copy_own(new)
        _copy_libraries(new)
        # Python never compares the compiled files with their sources: a box cannot change either.
        # Boxes can read the files, so these contain no path of the host.
        compileall.compile_dir(
            new,
            quiet=2,
            stripdir=str(new),
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )
        try:
            new.rename(folder)
        except OSError:
            if not folder.exists():  # Another process made the same folder first.
                raise
    return folder


def lay_out_sdk(folder: Path, *, python: str, machine: str) -> None:
    """Fill ``folder`` with the sources of the SDK and its dependencies for the Python of an image.

    Args:
        folder: a new folder.
        python: version such as ``"3.11"``.
        machine: in the notation of ``platform.machine()``, such as ``"x86_64"``.

    Raises:
        InputError: the dependencies must be fetched, and pip is not installed.
        InfraError: pip fails.
    """
    _copy_own(folder)
    this_platform = (
        f"{sys.version_info.major}.{sys.version_info.minor}",
        platform.machine(),
        platform.libc_ver()[0],
    )
    if this_platform == (python, machine, "glibc"):
        _copy_libraries(folder)
    else:
        _pip_install(folder, python, machine)


def _own_files() -> Iterator[tuple[str, Path]]:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {PACKAGE} is not installed; install fumehood-sdk again")
    root = Path(next(iter(spec.submodule_search_locations)))
    for file in (*root.rglob("*.py"), *root.rglob("*.md")):
        inside = file.relative_to(root)
        if inside.parent != Path(_GENERATED) or file.name.startswith(_AGENT_MESSAGES):
            yield str(PurePath(PACKAGE, inside)), file


def _copy_own(folder: Path) -> None:
    for inside, file in _own_files():
        _copy(file, folder / inside)


def _copy_libraries(folder: Path) -> None:
    for name in LIBRARIES:
        installed = distribution(name)
        for file in installed.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                _copy(Path(str(installed.locate_file(file))), folder / file)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _pip_install(folder: Path, python: str, machine: str) -> None:
    if find_spec("pip") is None:
        raise InputError(
            f"fetching libraries for Python {python} needs pip; "
            "install it into the environment of fumehood"
        )
    # With -P Python imports nothing from the current folder, which may hold untrusted code.
    command = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"]
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
