"""The files and modules of the project."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fumehood", "fumehood_snapshots", "fumehood_agent")


@cache
def committed_files() -> tuple[Path, ...]:
    """Return every committed or new file that git does not ignore."""
    listed = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def python_files() -> Iterator[Path]:
    """Yield every Python file that is not generated."""
    for path in committed_files():
        if path.suffix == ".py" and not path.stem.endswith(("_pb2", "_pb2_grpc")):
            yield path


def modules(package: str) -> list[str]:
    """Return the names of all modules of a package, except ``__main__`` modules."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    found = walk_packages(spec.submodule_search_locations, f"{package}.")
    return [package, *(module.name for module in found if not module.name.endswith("__main__"))]
