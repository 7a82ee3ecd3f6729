"""Fetches the packages of third-party agents that users name, from npm into the user's cache."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.images.npm import run_npm
from fumehood.engines.images.sources import cache_folder, source_folder

RECIPES: Mapping[str, str] = {
    "opencode": "sandbox_images/agents/opencode",
}
"""Name → folder with a Dockerfile and a package-lock.json."""
_PACKAGES = "packages"


def recipe_digest(name: str) -> str:
    """Return the SHA-256 of a recipe; its package-lock.json states the digests of the packages.

    Raises:
        InputError: the installation lacks the recipe.
    """
    folder, digest = source_folder(RECIPES[name]), sha256()
    for file in _files(folder):
        digest.update(f"{file.name}\0".encode() + sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def fetched_recipe(name: str, progress: Callable[[str], None]) -> Path:
    """Return a folder with a recipe and its packages, which are fetched if they are not in the
    user's cache.

    Raises:
        InputError: npm is not installed, or the installation lacks the recipe.
        InfraError: npm fails.
    """
    cache = cache_folder("agents")
    folder = cache / f"{name}-{recipe_digest(name)[:16]}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            progress(f"fetching the packages of {name} from npm")
            # Another name until it is complete, so an interrupted fetch is not used.
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            packages = part / _PACKAGES
            packages.mkdir(parents=True)
            for file in _files(source_folder(RECIPES[name])):
                shutil.copy(file, packages if file.name.startswith("package") else part)
            _fetch(name, packages)
            part.rename(folder)
    return folder


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a recipe; its folders contain packages that a developer fetched."""
    yield from sorted(path for path in folder.iterdir() if path.is_file())


def _fetch(name: str, folder: Path) -> None:
    if shutil.which("npm") is None:
        raise InputError(f"the agent {name} needs npm; install it (Debian: apt-get install npm)")
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    run_npm(command, folder, f"fetch the packages of {name}")
