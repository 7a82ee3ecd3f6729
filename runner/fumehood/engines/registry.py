"""The registry of engines, and the choice of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fumehood.core.errors import InputError
from fumehood.core.registry import Registry
from fumehood.engines.engine import Engine, EngineOptions


class EngineFactory(Protocol):
    """The class of an engine."""

    def __call__(self, options: EngineOptions | None = None, /) -> Engine:
        """Construct the engine, without side effects."""


ENGINES: Registry[EngineFactory] = Registry(
    "engine",
    {
        "docker": "fumehood.engines.docker.engine:DockerEngine",
        "oci": "fumehood.engines.oci.engine:OciEngine",
        "bubblewrap": "fumehood.engines.bubblewrap.engine:BubblewrapEngine",
        "inline": "fumehood.engines.inline:InlineEngine",
        "process": "fumehood.engines.process:ProcessEngine",
    },
)

AUTO = "auto"
INLINE = "inline"
_REQUESTED = "as requested"
_AUTO_ORDER = ("docker", "bubblewrap")
"""Strongest isolation first. The process engine is never chosen automatically."""
_ORDER_FOR_ARCHIVES = ("oci",)
"""Without docker, it has no image for built-in agents and modules, so it is not chosen for them."""


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    """An engine that is ready."""

    engine: Engine
    reason: str
    """One line: which engine, and why it was chosen."""


def choose_engine(name: str, options: EngineOptions | None = None) -> ChosenEngine:
    """Return the engine called ``name``; with ``"auto"``, oci if an agent is an image archive, and
    otherwise the first of docker and bubblewrap that is ready.

    Where none is ready, ``"auto"`` takes the inline engine if every agent is a built-in one.

    Raises:
        InputError: the engine does not exist, does not honour the options, or is not ready.
    """
    options = options or EngineOptions()
    if name != AUTO:
        return _choose(name, options, _REQUESTED)
    reasons: list[str] = []
    first = "only oci starts image archives" if options.archives else f"first choice of {AUTO}"
    for candidate in _ORDER_FOR_ARCHIVES if options.archives else _AUTO_ORDER:
        try:
            return _choose(candidate, options, "; ".join(reasons) or first)
        except InputError as error:
            reasons.append(str(error))
    if options.builtin_only and not options.runtime:
        return _choose(INLINE, options, f"agents have no box, because {'; '.join(reasons)}")
    raise InputError("no engine can isolate an untrusted agent here. " + ". ".join(reasons))


def _choose(name: str, options: EngineOptions, why: str) -> ChosenEngine:
    engine = ENGINES.load(name)(options)
    if options.runtime is not None and not engine.has_runtimes:
        engine.close()
        raise InputError(
            f"the {name} engine has no runtimes, so it cannot use {options.runtime!r}; "
            "remove --runtime or use --engine docker or oci"
        )
    if not options.forked_starts and why == _REQUESTED and not engine.has_forked_starts:
        engine.close()
        raise InputError(
            f"the {name} engine forks no agents: remove --no-forked-starts, or use --engine "
            "bubblewrap"
        )
    readiness = engine.check()
    if not readiness.ready:
        engine.close()
        raise InputError(f"{name} is not ready: {readiness.detail}")
    return ChosenEngine(engine, f"{name} ({readiness.detail}); {why}")
