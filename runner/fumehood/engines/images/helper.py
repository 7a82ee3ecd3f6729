"""Compiles the in-box command ``fumehood`` from C into one static binary, in the user's cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.engines.images.sources import cache_folder, source_folder

FOLDER = "sandbox_images/helper"
COMPILERS = ("musl-gcc", "cc")
"""The first one that is installed is used. With musl the binary is a tenth of the size."""
FLAGS = ("-static", "-Os", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_TIMEOUT_S = 120


def build_helper(progress: Callable[[str], None]) -> Path | None:
    """Return the helper, compiled anew after changes of its sources; None without a C compiler.

    Raises:
        InfraError: compilation fails.
    """
    sources = source_folder(FOLDER)
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        progress(
            "boxes get no `fumehood` command: no C compiler (Debian: apt-get install musl-tools)"
        )
        return None
    binary = cache_folder("helper") / f"fumehood-{_digest(sources, compiler)}"
    if not binary.is_file():
        progress("compiling the in-box command")
        _compile(compiler, sorted(sources.glob("*.c")), binary)
    return binary


def _digest(sources: Path, compiler: str) -> str:
    digest = sha256(repr((Path(compiler).name, FLAGS)).encode())
    for path in sorted(sources.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(compiler: str, sources: list[Path], binary: Path) -> None:
    with tempfile.TemporaryDirectory(dir=binary.parent) as folder:
        output = Path(folder, binary.name)
        command = [compiler, *FLAGS, "-o", str(output), *map(str, sources)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no error message"])[0]
            raise InfraError(f"{compiler} cannot compile the in-box command: {reason}")
        # A box runs as another user and must be able to execute it, also with umask 077.
        output.chmod(0o755)
        output.rename(binary)
