"""Engines under attack, each prepared once, and the switch for attacking them with everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from runner.engines.engine import EngineOptions
from runner.engines.table import choose_engine
from runner.hostile.probe import Probe

ENGINES = {"docker": ("docker", None), "runsc": ("docker", "runsc"), "bubblewrap": ("bubblewrap", None)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-attack", action="store_true", help="run the whole corpus, not a part of it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("every_attack", default=False):
        return
    left_out = [item for item in items if item.get_closest_marker("every_attack")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("every_attack")]


@pytest.fixture(scope="session")
def probes() -> Iterator[Callable[[str], Probe]]:
    """Return the probe of an engine by its name here; raises InputError where the engine is not ready."""
    with ExitStack() as stack:
        ready: dict[str, Probe] = {}

        def probe_of(name: str) -> Probe:
            if name not in ready:
                engine, runtime = ENGINES[name]
                chosen = stack.enter_context(
                    closing(choose_engine(engine, EngineOptions(runtime=runtime)).engine)
                )
                ready[name] = stack.enter_context(Probe(chosen))
            return ready[name]

        yield probe_of
