"""Every engine in turn."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fumehood.engines.engine import AgentKind, AgentSource, Engine, EngineOptions
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from tests.conformance.boxes import Boxes, Listener

CONTAINERS = [
    pytest.param(("docker", None), id="docker", marks=[pytest.mark.docker, pytest.mark.image]),
    pytest.param(("docker", "runsc"), id="runsc", marks=[pytest.mark.image, pytest.mark.runsc]),
]
CONTAINED = [
    *CONTAINERS,
    pytest.param(("bubblewrap", None), id="bubblewrap", marks=pytest.mark.bubblewrap),
]
ALL = [*CONTAINED, pytest.param(("process", None), id="process")]


def _engine(choice: tuple[str, str | None]) -> Iterator[Engine]:
    name, runtime = choice
    engine = choose_engine(name, EngineOptions(runtime=runtime)).engine
    yield engine
    engine.close()


@pytest.fixture(params=ALL, scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    yield from _engine(request.param)


@pytest.fixture(params=CONTAINED, scope="module")
def containing_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    yield from _engine(request.param)


@pytest.fixture(params=CONTAINERS, scope="module")
def container_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    yield from _engine(request.param)


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    # pytest's own folders have names too long for the address of a socket.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def listener(socket_dir: Path) -> Iterator[Listener]:
    with Listener(socket_dir) as listening:
        yield listening


def _boxes(engine: Engine, socket_dir: Path) -> Iterator[Boxes]:
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    with ExitStack() as cleaning:
        yield Boxes(engine, image, socket_dir, owner_labels(secrets.token_hex(4)), cleaning)


@pytest.fixture
def boxes(engine: Engine, socket_dir: Path) -> Iterator[Boxes]:
    yield from _boxes(engine, socket_dir)


@pytest.fixture
def sealed(containing_engine: Engine, socket_dir: Path) -> Iterator[Boxes]:
    """Boxes of the engines that keep something out or in."""
    yield from _boxes(containing_engine, socket_dir)


@pytest.fixture
def containers(container_engine: Engine, socket_dir: Path) -> Iterator[Boxes]:
    """Boxes of the engines with resource control."""
    yield from _boxes(container_engine, socket_dir)
