"""Every engine there is, and which one is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fumehood.core.errors import InputError
from fumehood.core.registry import Registry
from fumehood.engines.engine import Engine, EngineOptions


class EngineFactory(Protocol):
    """An engine's class."""

    def __call__(self, options: EngineOptions | None = None, /) -> Engine:
        """Make the engine; touches nothing yet."""
        ...


ENGINES: Registry[EngineFactory] = Registry(
    "engine",
    {
        "docker": "fumehood.engines.docker.engine:DockerEngine",
        "bubblewrap": "fumehood.engines.bubblewrap.engine:BubblewrapEngine",
        "inline": "fumehood.engines.inline:InlineEngine",
        "process": "fumehood.engines.process:ProcessEngine",
    },
)

AUTO = "auto"
INLINE = "inline"
_AUTO_ORDER = ("docker", "bubblewrap")
"""Stronger first; a runtime such as runsc has to be asked for. Never the process engine."""


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    """An engine that is ready."""

    engine: Engine
    reason: str
    """Which one and why, in one line."""


def choose_engine(name: str, options: EngineOptions | None = None) -> ChosenEngine:
    """Return the engine called ``name``, or with ``"auto"`` the first of docker and bubblewrap that is ready.

    Where neither is ready, ``"auto"`` takes the inline engine if every agent is a built-in one.

    Args:
        name: in the table of engines, or ``"auto"``.
        options: what the user says about it. A runtime can only be had from docker.

    Raises:
        InputError: there is no such engine, or none is ready; the message says what to install.
    """
    options = options or EngineOptions()
    if name != AUTO:
        return _choose(name, options, "as asked")
    refusals: list[str] = []
    for candidate in _AUTO_ORDER[:1] if options.runtime else _AUTO_ORDER:
        try:
            return _choose(candidate, options, "; ".join(refusals) or f"{AUTO} takes it first")
        except InputError as error:
            refusals.append(str(error))
    if options.runtime:
        raise InputError(f"a runtime can only be had from docker, and {'. '.join(refusals)}")
    if options.builtin_only:
        return _choose(INLINE, options, f"agents have no box, because {'; '.join(refusals)}")
    raise InputError("no engine can hold an untrusted agent here. " + ". ".join(refusals))


def _choose(name: str, options: EngineOptions, why: str) -> ChosenEngine:
    engine = ENGINES.load(name)(options)
    readiness = engine.check()
    if not readiness.ready:
        engine.close()
        raise InputError(f"{name} is not ready: {readiness.detail}")
    return ChosenEngine(engine, f"{name} ({readiness.detail}); {why}")
