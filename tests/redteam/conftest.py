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
    "oci": ("oci", None),
    "oci-runsc": ("oci", "runsc"),
    "bubblewrap": ("bubblewrap", None),
    "bubblewrap-new-starts": ("bubblewrap", None),
    "bubblewrap-prepared": ("bubblewrap", None),
}


@pytest.fixture(scope="session")
def probes() -> Iterator[Callable[[str], Probe]]:
    """Return the probe of an engine by its name; raises InputError if the engine is not ready."""
    with ExitStack() as stack:
        ready: dict[str, Probe] = {}

        def probe_of(name: str) -> Probe:
            if name not in ready:
                engine, runtime = ENGINES[name]
                options = EngineOptions(
                    runtime=runtime, forked_starts=name != "bubblewrap-new-starts"
                )
                chosen = stack.enter_context(closing(choose_engine(engine, options).engine))
                is_prepared = name == "bubblewrap-prepared"
                probe = Probe(chosen, interference=False, prepared=is_prepared)
                ready[name] = stack.enter_context(probe)
            return ready[name]

        yield probe_of
