from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from fumehood.orchestrator.service_pool import ServiceWorker
from fumehood.wire.control_client import ControlClient
from tests.parts.folders import short_folder

_numbers = count()


@pytest.fixture(scope="session")
def lasting_worker() -> Iterator[ServiceWorker]:
    """A sandbox service that all tests share and that must survive them."""
    with short_folder() as directory:
        worker = ServiceWorker(Path(directory) / "w")
        yield worker
        assert worker.alive
        assert worker.client.health().episodes_open == 0
        worker.stop()


@pytest.fixture
def client(lasting_worker: ServiceWorker) -> ControlClient:
    """The orchestrator's connection to the shared service."""
    return lasting_worker.client


@pytest.fixture
def mortal_worker() -> Iterator[ServiceWorker]:
    """A sandbox service for one test, which may kill it."""
    with short_folder() as directory:
        worker = ServiceWorker(Path(directory) / "w")
        yield worker
        worker.stop()


@pytest.fixture
def episode_id() -> str:
    """An episode ID that no other test uses."""
    return f"hostile {next(_numbers)}"
