"""Builds the image ``agent-node``: Node, the TypeScript SDK and the TypeScript compiler."""

from __future__ import annotations

import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.build import build, called_latest, write_context
from fumehood.engines.images.debian_packages import PackageImage, build_of_packages
from fumehood.engines.images.npm import run_npm
from fumehood.engines.images.sources import (
    cache_folder,
    is_checkout,
    read_source,
    source_folder,
)

NAME = "fumehood/agent-node"
"""Repository. ``:latest`` is the tag that Dockerfiles of agents start from."""
SDK = "agent_sdk/typescript"
COMPILER = ("typescript", "@typescript/", "@types/node", "undici-types")
"""Prefixes of npm packages that compile an agent but are not needed to run it."""

_BASE = PackageImage(
    repository="fumehood/debian-node",
    packages=("nodejs",),
    # Debian's Node reads parts of its library from usr/share/nodejs.
    kept=("usr/bin/node", "usr/lib/", "usr/share/nodejs/", "lib/", "lib64/", "etc/ld.so.conf.d/"),
    dropped=("usr/lib/dpkg/", "lib/systemd/", "usr/share/nodejs/@types/"),
    dropped_parts=frozenset({"gconv", "perl5", "krb5", "sasl2", "engines-3"}),
)
_FOLDER = "sandbox_images/agent-node"
_NAME = "@fumehood/sdk"
_BUILD = "build the TypeScript SDK"
_SDK_FILES = ("package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json")


def build_agent_node(progress: Callable[[str], None], daemon: Daemon) -> str:
    """Build the image if it does not exist, and return its reference.

    Raises:
        InputError: mmdebstrap or npm is not installed.
        InfraError: the daemon or a package manager fails.
    """
    reference = current_reference()
    if daemon.image(reference) is None:
        progress(f"building the image {reference}")
        if daemon.image(_BASE.reference) is None:
            build_of_packages(_BASE, daemon)
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as context:
            lay_out_node_modules(Path(folder, "node_modules"), compiler=True)
            Path(folder, "Dockerfile").write_text(read_source(_FOLDER, "Dockerfile"), "utf-8")
            write_context(Path(folder), context)
            build(daemon, context, reference, {"BASE": _BASE.reference}, network=False)
    return called_latest(daemon, reference)


def current_reference() -> str:
    """Return the reference of the image that the present sources give."""
    recipe = f"{sdk_digest()} {read_source(_FOLDER, 'Dockerfile')} {_BASE.reference}"
    return f"{NAME}:{sha256(recipe.encode()).hexdigest()[:16]}"


def sdk_digest() -> str:
    """Return a hex digest of the sources of the TypeScript SDK."""
    sdk = source_folder(SDK)
    files = [*(sdk / name for name in _SDK_FILES), *sorted((sdk / "src").rglob("*.ts"))]
    digest = sha256(repr(COMPILER).encode())
    for file in files:
        digest.update(f"{file.relative_to(sdk)}\0".encode() + sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def lay_out_node_modules(folder: Path, *, compiler: bool) -> None:
    """Make a folder ``node_modules`` with the compiled SDK, its dependencies and maybe the
    compiler.

    Raises:
        InputError: npm is not installed.
        InfraError: npm fails.
    """
    sdk = built_sdk()
    for name in _packages(sdk, compiler):
        shutil.copytree(
            sdk / "node_modules" / name,
            folder / name,
            ignore=shutil.ignore_patterns("*.map", ".bin"),
        )
    shutil.copytree(sdk / "dist", folder / _NAME / "dist")
    shutil.copy(sdk / "package.json", folder / _NAME)


def built_sdk() -> Path:
    """Return the folder of the TypeScript SDK with ``dist/`` and ``node_modules/``.

    A checkout is built in place. An installed package is copied to the user's cache and built
    there.

    Raises:
        InputError: npm is not installed.
        InfraError: npm fails.
    """
    if shutil.which("npm") is None:
        raise InputError(
            "building the TypeScript SDK needs npm; install it (Debian: apt-get install npm)"
        )
    sources = source_folder(SDK)
    if is_checkout():
        run_npm([str(sources.parents[1] / "scripts" / "typescript-sdk")], sources, _BUILD)
        return sources
    folder = cache_folder("typescript-sdk") / sdk_digest()[:16]
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "dist" / "index.js").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(sources, folder)
            run_npm(["npm", "ci", "--loglevel=error", "--no-audit", "--no-fund"], folder, _BUILD)
            run_npm(["npm", "run", "--silent", "build"], folder, _BUILD)
    return folder


def _packages(sdk: Path, compiler: bool) -> Iterator[str]:
    """Yield the installed top-level npm packages that are needed; nested ones are copied with
    them."""
    packages = json.loads((sdk / "package-lock.json").read_text("utf-8"))["packages"]
    for path, package in packages.items():
        name = path.removeprefix("node_modules/")
        is_needed = not package.get("dev") or (compiler and name.startswith(COMPILER))
        if name and "/node_modules/" not in name and is_needed and (sdk / path).is_dir():
            yield name
