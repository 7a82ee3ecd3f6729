"""Agents as plain processes of the host: no isolation, for code that is trusted.

What it gives: an environment with the minimum in it, a session and group of its own that ends with us,
capped output. What it does not give is everything else.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
from pathlib import Path

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.agent_code import ENVIRONMENT, agent_mounts, sdk_command
from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    AgentKind,
    AgentSource,
    BoxSpec,
    EngineOptions,
    Image,
    Isolation,
    Mount,
    OwnerCheck,
    Readiness,
)
from fumehood.engines.records import SessionRecords, default_folder
from fumehood.engines.subprocess_box import ChildBox, Command, ProcessLauncher, shell_code

SOCKET_VARIABLE = "FUMEHOOD_SOCKET"
"""Tells the agent where its socket is, for there is no /fumehood here."""


class ProcessEngine:
    """Runs agents without a box around them."""

    name = "process"
    isolation = Isolation.NONE
    unenforced = ("memory_bytes", "cpus", "processes", "file_bytes", "tmp_bytes", "open_files")

    def __init__(self, options: EngineOptions | None = None) -> None:
        self._trust = (options or EngineOptions()).trust
        self._starter = ProcessLauncher()
        self._records = SessionRecords(default_folder())

    def check(self) -> Readiness:
        """Say that it always works, and what it is worth."""
        return Readiness(
            True, "no isolation: agents run as processes of this user; for trusted code only"
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return how to run ``source``.

        Raises:
            InputError: it is not trusted, or it is something only a container engine can run.
        """
        if source.kind in (AgentKind.FOLDER, AgentKind.IMAGE):
            raise InputError(f"the process engine cannot run {source.name!r}; use --engine docker")
        if source.kind is not AgentKind.BUILTIN and not self._trust:
            raise InputError(
                f"the process engine gives {source.name!r} this machine without any isolation; "
                "use --engine docker or bubblewrap, or add --i-trust-this-agent"
            )
        mounts = agent_mounts(source, for_nobody=False)
        environment = ENVIRONMENT | ({"PYTHONPATH": str(mounts[0].source.parent)} if mounts else {})
        return Image("", "", (sys.executable, *sdk_command(source)[1:]), mounts, environment)

    def start(self, spec: BoxSpec) -> ChildBox:
        """Start the agent's process.

        Paths inside a box do not exist here, so where an argument or a variable names the target of a
        mount, it gets the source instead.

        Raises:
            InputError: there is no such command.
            InfraError: the machine cannot start a process.
        """
        mounts = (Mount(spec.socket_dir, BOX_SOCKET_DIR), *spec.image.mounts, *spec.mounts)
        command = [_at_host(word, mounts) for word in (*spec.image.command, *spec.arguments)]
        environment = {"PATH": _search_path()} | {
            name: _at_host(value, mounts) for name, value in spec.image.environment.items()
        }
        environment[SOCKET_VARIABLE] = str(spec.socket_dir / "grpc.sock")
        if shutil.which(command[0], path=environment["PATH"]) is None:
            raise InputError(f"there is no command {command[0]!r} on this machine")
        child = self._starter.start(
            Command(arguments=(*_dying_with_us(), *command), environment=environment)
        )
        record = self._records.write(child.pid, spec.labels)
        return ChildBox(
            child,
            spec.limits.output_bytes,
            read_code=_own_end,
            on_close=lambda: record.unlink(missing_ok=True),
        )

    def reap(self, is_owned: OwnerCheck) -> int:
        """Kill what is left of sessions whose owner is gone."""
        return self._records.reap(is_owned)

    def close(self) -> None:
        """End the thread that starts boxes, and any that still run."""
        self._starter.close()


def _own_end(code: int) -> int:
    """Return how the agent ended by itself; code that is trusted does not kill itself, so it was not that.

    Raises:
        InfraError: somebody killed it.
    """
    if code == -signal.SIGKILL:
        raise InfraError("somebody killed the agent's process")
    return shell_code(code)


def _search_path() -> str:
    return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


def _dying_with_us() -> tuple[str, ...]:
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


def _at_host(text: str, mounts: tuple[Mount, ...]) -> str:
    sources = {mount.target: str(mount.source) for mount in mounts}
    longest_first = sorted(sources, key=len, reverse=True)
    whole_paths = rf"(?<![\w./-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])"
    return re.sub(whole_paths, lambda found: sources[found[0]], text)
