"""The inline engine: built-in agents inside the service, without a box."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import NoReturn

from fumehood.core.errors import InputError
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxSpec,
    Engine,
    EngineOptions,
    Image,
    Isolation,
    IsolationFacts,
    Limits,
    Orphan,
    OwnerCheck,
    Readiness,
    host_kernel,
)


class InlineEngine(Engine):
    """Starts no boxes: a service worker without untrusted episodes runs the agent in memory."""

    name = "inline"
    isolation = Isolation.INLINE
    unenforced = tuple(limit.name for limit in fields(Limits))

    def __init__(self, options: EngineOptions | None = None) -> None:
        pass

    def check(self) -> Readiness:
        """Report that the engine is always ready, and which agents it plays."""
        return Readiness(
            True, "no isolation: built-in agents run inside the service, without a box"
        )

    def isolation_facts(self) -> IsolationFacts:
        """Return the facts of the service: its user and its network, without a filter."""
        return IsolationFacts(
            kernel=host_kernel(), users="that of the service", network="host", system_call_filter=""
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return an image that is never started.

        Raises:
            InputError: the agent does not come with the SDK.
        """
        if source.kind is not AgentKind.BUILTIN:
            raise InputError(
                f"the inline engine plays built-in agents only, not {source.name!r}; "
                "use --engine docker or bubblewrap, or an agent that `fumehood list agents` names"
            )
        return Image("", "", ())

    def start(self, spec: BoxSpec) -> NoReturn:
        """Refuse to start a box.

        Raises:
            InputError: always.
        """
        raise InputError("the inline engine starts no boxes; use --engine docker or bubblewrap")

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Return nothing: this engine leaves nothing on the host."""
        return ()

    def remove(self, orphan: Orphan) -> bool:
        """Do nothing."""
        return True

    def close(self) -> None:
        """Do nothing."""
