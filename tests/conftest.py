"""Options and markers of the tests.

A test that needs an absent engine is skipped with the reason. In CI such a skip is a failure.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator
from functools import cache

import pytest
from hypothesis import settings

from fumehood.engines.registry import ENGINES

# Before the first test imports them.
pytest.register_assert_rewrite("fumehood.testing")

# Busy machines must not fail a test, and CI must reproduce its own failures.
SAME_EXAMPLES = bool(os.environ.get("CI") or os.environ.get("SAME_EXAMPLES"))
settings.register_profile("fumehood", deadline=None, derandomize=SAME_EXAMPLES)
settings.load_profile("fumehood")

ENGINE_OF_MARKER: dict[str, tuple[str, str | None]] = {
    **{name: (name, None) for name in ENGINES},
    "image": ("docker", None),
    "runsc": ("docker", "runsc"),
    "runc": ("oci", "runc"),
}
"""Marker → the engine and the runtime that its tests need."""

OPTIONAL = {
    "slow": ("--all", "also run slow tests: `make test-all`"),
    "release": ("--release", "also run the longest tests: `make test-release`"),
    "every_agent": ("--every-agent", "also run the large off-the-shelf agents: `make agents`"),
    "every_attack": ("--every-attack", "run the whole red-team corpus: `make redteam`"),
}
"""Marker of deselected tests → the option that selects them and its help."""

LONG_TEST_TIMEOUT_S = 3600
"""Limit of a test that CI does not run. `timeout` in pyproject.toml limits all others."""

SIGNING_KEY = "FUMEHOOD_SIGNING_KEY"


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker, (option, help_text) in OPTIONAL.items():
        parser.addoption(option, dest=marker, action="store_true", help=help_text)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without the cyclic garbage collector, which would visit all tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("runsc"):
            # The same tests run on docker, and gVisor starts a box in seconds.
            item.add_marker(pytest.mark.slow)
        if any(map(item.get_closest_marker, OPTIONAL.keys() - {"slow"})):
            item.add_marker(pytest.mark.timeout(LONG_TEST_TIMEOUT_S))
    deselected = [marker for marker in OPTIONAL if not config.getoption(marker)]
    optional = [item for item in items if any(map(item.get_closest_marker, deselected))]
    config.hook.pytest_deselected(items=optional)
    items[:] = [item for item in items if item not in set(optional)]


def pytest_configure(config: pytest.Config) -> None:
    """Register a marker per engine, and sign with a temporary key, not with the user's."""
    for name in ENGINES:
        config.addinivalue_line("markers", f"{name}: needs the engine {name}")
    if SIGNING_KEY not in os.environ:
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ[SIGNING_KEY] = os.path.join(folder.name, "key.pem")


@cache
def _reason_missing(engine: str, runtime: str | None) -> str | None:
    from fumehood.core.errors import InputError
    from fumehood.engines.engine import EngineOptions
    from fumehood.engines.registry import choose_engine

    try:
        choose_engine(engine, EngineOptions(runtime=runtime)).engine.close()
    except InputError as error:
        return str(error)
    return None


def _engine_markers(item: pytest.Item) -> list[str]:
    return [marker for marker in ENGINE_OF_MARKER if item.get_closest_marker(marker) is not None]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in _engine_markers(item):
        reason = _reason_missing(*ENGINE_OF_MARKER[marker])
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
        and _engine_markers(item)
        and item.get_closest_marker("runsc") is None
    ):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report
