"""Tests that need something of the machine: left out where it is missing, failed where CI is set."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from functools import cache

import pytest
from hypothesis import settings

# A machine that is busy is not a machine that is wrong; and what CI finds, it finds again.
settings.register_profile("fumehood", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("fumehood")

ENGINE_OF_MARKER = {
    "docker": ("docker", None),
    "image": ("docker", None),
    "bubblewrap": ("bubblewrap", None),
    "runsc": ("docker", "runsc"),
}
"""Marker → the engine and the runtime without which its tests mean nothing."""

TAKES_LONG = {
    "every_agent": "run every agent off the shelf, also those that are large",
    "every_attack": "run the whole corpus of hostile agents, not a part of it",
}
"""Marker of tests that are left out → what the option of its name does."""

SIGNING_KEY = "FUMEHOOD_SIGNING_KEY"


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker, does in TAKES_LONG.items():
        parser.addoption(f"--{marker.replace('_', '-')}", action="store_true", help=does)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [marker for marker in TAKES_LONG if not config.getoption(marker)]
    long = [item for item in items if any(item.get_closest_marker(marker) for marker in left_out)]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_configure(config: pytest.Config) -> None:
    """Let tests sign with a key of their own: the one of whoever runs them is for runs that matter."""
    if SIGNING_KEY not in os.environ:
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ[SIGNING_KEY] = os.path.join(folder.name, "key.pem")


@cache
def _missing(engine: str, runtime: str | None) -> str | None:
    from fumehood.core.errors import InputError
    from fumehood.engines.engine import EngineOptions
    from fumehood.engines.table import choose_engine

    try:
        choose_engine(engine, EngineOptions(runtime=runtime)).engine.close()
    except InputError as error:
        return str(error)
    return None


def _marked(item: pytest.Item) -> list[str]:
    return [marker for marker in ENGINE_OF_MARKER if item.get_closest_marker(marker) is not None]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in _marked(item):
        reason = _missing(*ENGINE_OF_MARKER[marker])
        if reason is not None:
            pytest.skip(f"needs {marker}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (
        report.skipped
        and os.environ.get("CI")
        and _marked(item)
        and item.get_closest_marker("runsc") is None
    ):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        report.outcome = "failed"
        report.longrepr = f"left out, which CI does not allow: {reason}"
    return report
