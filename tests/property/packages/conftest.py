from __future__ import annotations

from collections.abc import Iterator

import pytest

from fumehood.orchestrator.service_pool import ServicePool
from fumehood.wire.control_client import ControlClient


@pytest.fixture(scope="session")
def service() -> Iterator[ControlClient]:
    """A sandbox service in a separate process."""
    with ServicePool(1) as pool, pool.lease() as client:
        yield client
