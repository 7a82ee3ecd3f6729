"""The process engine: agents as plain processes of the host, without isolation, for trusted code.

An agent gets a minimal environment, a separate session that ends with this process, and capped
output.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.agent_code import ENVIRONMENT, agent_mounts, sdk_command
from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    IN_IMAGES,
    AgentKind,
    AgentSource,
    BoxSpec,
    Engine,
    EngineOptions,
    Image,
    Isolation,
    IsolationFacts,
    Mount,
    Readiness,
    host_kernel,
)
from fumehood.engines.subprocess_box import (
    ChildBox,
    ChildBoxEngine,
    Command,
    die_with_parent,
    shell_code,
)

SOCKET_VARIABLE = "FUMEHOOD_SOCKET"
"""Variable with the path of the agent's socket, because the host has no /fumehood."""


class ProcessEngine(ChildBoxEngine, Engine):
    """Runs agents without a sandbox."""

    name = "process"
    isolation = Isolation.NONE
    unenforced = ("memory_bytes", "cpus", "processes", "file_bytes", "tmp_bytes", "open_files")

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__()
        self._trust = (options or EngineOptions()).trust

    def check(self) -> Readiness:
        """Return that it works, and that it gives no isolation."""
        return Readiness(
            True, "no isolation: agents run as processes of this user; for trusted code only"
        )

    def isolation_facts(self) -> IsolationFacts:
        """Return the facts of plain processes: this user, the host's network, no filter."""
        return IsolationFacts(
            kernel=host_kernel(), users=str(os.geteuid()), network="host", system_call_filter=""
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return the command that runs ``source``.

        Raises:
            InputError: the agent is not trusted, or it needs a container engine.
        """
        if source.kind in IN_IMAGES:
            raise InputError(f"the process engine cannot run {source.name!r}; use --engine docker")
        if source.kind is not AgentKind.BUILTIN and not self._trust:
            raise InputError(
                f"the process engine would run {source.name!r} without isolation; "
                "use --engine docker or bubblewrap, or add --i-trust-this-agent"
            )
        mounts = agent_mounts(source, as_other_user=False)
        environment = ENVIRONMENT | ({"PYTHONPATH": str(mounts[0].source.parent)} if mounts else {})
        # With -P a built-in agent imports nothing from the current folder.
        command = (sys.executable, "-P", *sdk_command(source)[1:])
        return Image("", "", command, mounts, environment)

    def start(self, spec: BoxSpec) -> ChildBox:
        """Start the agent's process.

        Paths inside a box do not exist here. Where an argument or a variable names the target of a
        mount, it is replaced by the source.

        Raises:
            InputError: the command does not exist.
            InfraError: the process cannot be started.
        """
        mounts = (Mount(spec.socket_dir, BOX_SOCKET_DIR), *spec.image.mounts, *spec.mounts)
        command = [_at_host(word, mounts) for word in (*spec.image.command, *spec.arguments)]
        environment = {"PATH": _search_path()} | {
            name: _at_host(value, mounts) for name, value in spec.image.environment.items()
        }
        environment[SOCKET_VARIABLE] = str(spec.socket_dir / "grpc.sock")
        if shutil.which(command[0], path=environment["PATH"]) is None:
            raise InputError(f"this machine has no command {command[0]!r}")
        child = self._starter.start(
            Command(arguments=(*die_with_parent(), *command), environment=environment)
        )
        record = self._records.write(child.pid, spec.labels)
        return ChildBox(
            child,
            spec.limits.output_bytes,
            read_code=_exit_status,
            on_close=lambda: record.unlink(missing_ok=True),
        )


def _exit_status(code: int) -> int:
    """Return the agent's exit status.

    Raises:
        InfraError: another process killed the agent. Trusted code does not kill itself.
    """
    if code == -signal.SIGKILL:
        raise InfraError("the agent's process was killed from outside")
    return shell_code(code)


def _search_path() -> str:
    return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


def _at_host(text: str, mounts: tuple[Mount, ...]) -> str:
    sources = {mount.target: str(mount.source) for mount in mounts}
    longest_first = sorted(sources, key=len, reverse=True)
    whole_paths = rf"(?<![\w./-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])"
    return re.sub(whole_paths, lambda match: sources[match[0]], text)
