"""Probes of the engines, each prepared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from fumehood.engines.engine import EngineOptions
from fumehood.engines.registry import choose_engine
from fumehood.redteam.probe import Probe

ENGINES = {
    "docker": ("docker", None),
    "runsc": ("docker", "runsc"),
    "bubblewrap": ("bubblewrap", None),
}


@pytest.fixture(scope="session")
def probes() -> Iterator[Callable[[str], Probe]]:
    """Return the probe of an engine by its name; raises InputError if the engine is not ready."""
    with ExitStack() as stack:
        ready: dict[str, Probe] = {}

        def probe_of(name: str) -> Probe:
            if name not in ready:
                engine, runtime = ENGINES[name]
                chosen = stack.enter_context(
                    closing(choose_engine(engine, EngineOptions(runtime=runtime)).engine)
                )
                ready[name] = stack.enter_context(Probe(chosen, interference=False))
            return ready[name]

        yield probe_of
