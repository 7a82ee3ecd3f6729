from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.agent_sdk.scripted_service import ScriptedService


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ScriptedService]:
    with ScriptedService(tmp_path / "s") as scripted:
        yield scripted


@pytest.fixture(params=[True, False], ids=["stream", "unary"])
def stream(request: pytest.FixtureRequest) -> bool:
    """Both ways of calling."""
    return bool(request.param)
