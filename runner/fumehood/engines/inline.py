"""Built-in agents inside the sandbox service: no box at all, for agents that come with the SDK."""

from __future__ import annotations

from typing import NoReturn

from fumehood.core.errors import InputError
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxSpec,
    EngineOptions,
    Image,
    Isolation,
    OwnerCheck,
    Readiness,
)


class InlineEngine:
    """Starts nothing: the service plays the agent in memory, in a worker that hosts no box."""

    name = "inline"
    isolation = Isolation.INLINE
    unenforced = (
        "memory_bytes",
        "cpus",
        "processes",
        "file_bytes",
        "tmp_bytes",
        "open_files",
        "output_bytes",
    )

    def __init__(self, options: EngineOptions | None = None) -> None:
        pass

    def check(self) -> Readiness:
        """Report that the engine is always ready, and which agents it plays."""
        return Readiness(
            True, "no isolation: built-in agents run inside the sandbox service, without a box"
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return an image that is never started.

        Raises:
            InputError: the agent does not come with the SDK.
        """
        if source.kind is not AgentKind.BUILTIN:
            raise InputError(
                f"the inline engine plays built-in agents only, not {source.name!r}; "
                "use --engine docker or bubblewrap"
            )
        return Image("", "", ())

    def start(self, spec: BoxSpec) -> NoReturn:
        """Refuse to start a box.

        Raises:
            InputError: always.
        """
        raise InputError("the inline engine starts no boxes; use --engine docker or bubblewrap")

    def reap(self, is_owned: OwnerCheck) -> int:
        """Return 0: this engine leaves nothing on the host."""
        return 0

    def close(self) -> None:
        """Do nothing."""
