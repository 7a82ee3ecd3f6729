"""Prepares the agents of the corpus as files that a box can run, and compiles those in C."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fumehood.engines.engine import AGENT_FOLDER, Image

AGENTS = Path(__file__).parent / "agents"
_COMPILE_TIMEOUT_S = 60
_FLAGS = ("-static", "-O1", "-w")
"""Static, because a box may lack the libraries of this machine."""


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """A folder of agents that is mounted in boxes."""

    path: Path
    missing_c: str
    """Why the agents in C are missing; empty if they are present."""

    def command(self, file: str, image: Image) -> tuple[str, ...] | None:
        """Return the command of the agent ``Attack.file`` in an image, or None if it is missing."""
        path = Path(file)
        inside = f"{AGENT_FOLDER}/{path.stem if path.suffix == '.c' else file}"
        match path.suffix:
            case ".py":
                return (image.command[0], inside)
            case ".sh":
                return ("sh", inside)
            case _:
                return None if self.missing_c else (inside,)


def fill_agent_folder(folder: Path) -> AgentFolder:
    """Fill ``folder`` with all agents, readable for all users."""
    folder.chmod(0o755)
    for file in AGENTS.iterdir():
        if file.suffix in (".py", ".sh"):
            shutil.copy(file, folder)
    missing_c = _compile_all(folder)
    for file in folder.iterdir():
        file.chmod(0o755)
    return AgentFolder(folder, missing_c)


def _compile_all(folder: Path) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return "the agent is written in C and needs gcc (Debian: apt-get install gcc libc6-dev)"
    for file in sorted(AGENTS.glob("*.c")):
        command = [compiler, *_FLAGS, "-o", str(folder / file.stem), str(file)]
        try:
            subprocess.run(
                command, check=True, capture_output=True, timeout=_COMPILE_TIMEOUT_S, text=True
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            lines = str(error.stderr or error).strip().splitlines()
            return f"the agent is written in C, and {file.name} does not compile here: {lines[-1]}"
    return ""
