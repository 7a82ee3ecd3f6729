"""The in-box helper: compiled here when it is first needed, from a few files of C, into one static binary.

It is named by what goes in, so what has not changed is not compiled again.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InfraError

FOLDER = Path(__file__).parents[4] / "sandbox_images" / "helper"
BUILT = FOLDER / ".cache"
COMPILERS = ("musl-gcc", "cc")
"""The first that there is. musl's C library makes a binary a tenth as large."""
FLAGS = ("-static", "-Os", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_TIMEOUT_S = 120


def build_helper(progress: Callable[[str], None]) -> Path | None:
    """Make sure of the helper, and return where it is; None where nothing can compile it.

    Args:
        progress: told, in one line, of what takes long or is missing.

    Raises:
        InfraError: the compiler refuses.
    """
    sources = sorted(FOLDER.glob("*.c"))
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if not sources or compiler is None:
        progress("boxes get no helper: that takes a checkout and a C compiler (Debian: musl-tools)")
        return None
    built = BUILT / f"fumehood-{_digest(compiler)}"
    if not built.is_file():
        progress("compiling the helper for boxes")
        _compile(compiler, sources, built)
    return built


def _digest(compiler: str) -> str:
    digest = sha256(repr((Path(compiler).name, FLAGS)).encode())
    for path in sorted(FOLDER.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(compiler: str, sources: list[Path], built: Path) -> None:
    BUILT.mkdir(exist_ok=True)
    fresh = built.with_suffix(".new")
    command = [compiler, *FLAGS, "-o", str(fresh), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it says nothing"])[0]
        raise InfraError(f"{compiler} cannot compile the helper for boxes: {said}")
    fresh.rename(built)
