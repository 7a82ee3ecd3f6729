"""The conformance agents: their programs, their connections to the seat, and the limits of
these."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.images.agent_node import build_agent_node
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.images.agent_shell import build_agent_shell
from fumehood.engines.images.helper import COMPILERS
from tests.conformance.agents.compiled import lay_out_cpp, lay_out_typescript

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One conformance agent."""

    name: str
    connection: str
    """How it reaches its seat."""
    lay_out: Callable[[Path], object]
    """Fills a folder that is mounted as ``/agent``; may compile."""
    command: tuple[str, ...]
    """Run in the box; ``python3`` is the box's own."""
    base: Callable[[Callable[[str], None], Daemon], str] = build_agent_python
    """Builds the image for containers and returns its reference."""
    needs: tuple[str, ...] = ()
    """Required programs of this machine; without them it is skipped."""
    in_box_command: bool = False
    """Whether it uses the command ``fumehood``, which needs a C compiler."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Protocol case → why this connection cannot express it."""

    def missing(self) -> str | None:
        """Return a required program that is missing."""
        if self.in_box_command and not any(map(shutil.which, COMPILERS)):
            return "a C compiler (Debian: apt-get install musl-tools)"
        return next((program for program in self.needs if shutil.which(program) is None), None)


def _copied(folder: str) -> Callable[[Path], object]:
    return lambda target: shutil.copytree(FOLDER / folder, target, dirs_exist_ok=True)


_OBJECTS = "MCP requires arguments to be an object; clients reject anything else"

LANGUAGES = (
    Language(
        name="Python",
        connection="SDK, gRPC stream",
        lay_out=_copied("python"),
        command=("python3", "/agent/agent.py"),
    ),
    Language(
        name="Python asyncio",
        connection="SDK, gRPC calls",
        lay_out=_copied("python"),
        command=("python3", "/agent/asyncio_agent.py"),
    ),
    Language(
        name="TypeScript",
        connection="SDK, gRPC stream",
        lay_out=lay_out_typescript,
        command=("node", "/agent/agent.js"),
        base=build_agent_node,
        needs=("node", "npm"),
    ),
    Language(
        name="C++",
        connection="generated code, gRPC stream",
        lay_out=lay_out_cpp,
        command=("/agent/agent",),
        needs=("g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"),
    ),
    Language(
        name="shell, curl",
        connection="HTTP, Connect JSON",
        lay_out=_copied("shell"),
        command=("sh", "/agent/curl.sh"),
        base=build_agent_shell,
        needs=("curl", "jq"),
    ),
    Language(
        name="shell",
        connection="the command, HTTP",
        lay_out=_copied("shell"),
        command=("sh", "/agent/command.sh"),
        in_box_command=True,
        base=build_agent_shell,
        needs=("jq",),
    ),
    Language(
        name="MCP client",
        connection="stdio, the command, HTTP",
        lay_out=_copied("mcp"),
        command=("python3", "/agent/mcp_agent.py"),
        in_box_command=True,
        lacks={"refusals": _OBJECTS, "size_limits": _OBJECTS},
    ),
)
"""All languages; a new one needs a folder and an entry."""
