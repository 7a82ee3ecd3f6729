"""The hostile agents as files that a box can run: copied, those in C compiled for this machine."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fumehood.engines.engine import AGENT_FOLDER, Image

AGENTS = Path(__file__).parent / "agents"
_COMPILE_TIMEOUT_S = 60
_FLAGS = ("-static", "-O1", "-w")
"""Static, because a box need not have the libraries of this machine."""


@dataclass(frozen=True, slots=True)
class Kit:
    """A folder of agents, to be shown in boxes."""

    folder: Path
    without_c: str
    """Why there is none of those in C; empty where they are there."""

    def command(self, file: str, image: Image) -> tuple[str, ...] | None:
        """Return what to run for an agent, or None when it is not in the kit.

        Args:
            file: as in the table.
            image: in which it will run; knows its Python.
        """
        path = Path(file)
        inside = f"{AGENT_FOLDER}/{path.stem if path.suffix == '.c' else file}"
        match path.suffix:
            case ".py":
                return (image.command[0], inside)
            case ".sh":
                return ("sh", inside)
            case _:
                return None if self.without_c else (inside,)


def lay_out_kit(folder: Path) -> Kit:
    """Fill ``folder`` with all agents, readable for everybody."""
    folder.chmod(0o755)
    for file in AGENTS.iterdir():
        if file.suffix in (".py", ".sh"):
            shutil.copy(file, folder)
    without_c = _compile_all(folder)
    for file in folder.iterdir():
        file.chmod(0o755)
    return Kit(folder, without_c)


def _compile_all(folder: Path) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return "it is written in C and there is no gcc here; install it (Debian: apt-get install gcc libc6-dev)"
    for file in sorted(AGENTS.glob("*.c")):
        command = [compiler, *_FLAGS, "-o", str(folder / file.stem), str(file)]
        try:
            subprocess.run(
                command, check=True, capture_output=True, timeout=_COMPILE_TIMEOUT_S, text=True
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = str(error.stderr or error).strip().splitlines()
            return f"it is written in C and {file.name} does not compile here: {said[-1]}"
    return ""
