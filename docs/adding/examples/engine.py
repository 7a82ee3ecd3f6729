"""Engine ``vm``: the interface of an engine, without an implementation."""

from collections.abc import Iterable

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.engine import (
    AgentSource,
    Box,
    BoxSpec,
    EngineOptions,
    Image,
    Isolation,
    IsolationFacts,
    Orphan,
    OwnerCheck,
    Readiness,
)


class VmEngine:
    """Starts boxes in virtual machines; not implemented."""

    name = "vm"
    isolation = Isolation.SANDBOXED_KERNEL
    unenforced = ()
    has_runtimes = False

    def __init__(self, options: EngineOptions | None = None) -> None:
        """Store the options."""
        self._options = options or EngineOptions()

    def check(self) -> Readiness:
        """Report what is missing."""
        return Readiness(False, "no virtual machine monitor is installed")

    def isolation_facts(self) -> IsolationFacts:
        """Return what separates a virtual machine from the host."""
        return IsolationFacts(
            kernel="Linux of the machine", users="0", network="none", system_call_filter=""
        )

    def sandboxed_runtimes(self) -> tuple[str, ...]:
        """Return no runtime."""
        return ()

    def prepare(self, source: AgentSource) -> Image:
        """Refuse every agent."""
        raise InputError(f"the vm engine cannot run {source.name!r}; use --engine docker")

    def start(self, spec: BoxSpec) -> Box:
        """Fail: no agent can be prepared."""
        raise InfraError("the vm engine cannot start boxes")

    def orphans(self, is_owned: OwnerCheck, *, images: bool = False) -> Iterable[Orphan]:
        """Return no orphan."""
        return ()

    def remove(self, orphan: Orphan) -> bool:
        """Remove nothing."""
        return True

    def close(self) -> None:
        """Release nothing."""
