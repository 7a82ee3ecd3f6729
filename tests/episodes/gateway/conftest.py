from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import ScriptedModels
from fumehood.wire.control_client import ControlClient
from tests.parts.listening import listening
from tests.parts.models import (
    Asker,
    Script,
    gateway_settings,
)
from tests.parts.specs import episode_spec


@pytest.fixture(scope="session")
def script() -> Script:
    return Script()


@pytest.fixture(scope="session")
def models(script: Script) -> Iterator[ScriptedModels]:
    with ScriptedModels(script) as provider:
        yield provider


@pytest.fixture(scope="session")
def pool(models: ScriptedModels) -> Iterator[ServicePool]:
    with ServicePool(1, ServiceOptions(http=HttpOffer(None, gateway_settings(models)))) as running:
        yield running


@pytest.fixture(scope="session")
def client(pool: ServicePool) -> Iterator[ControlClient]:
    with pool.lease() as lent:
        yield lent


@pytest.fixture
def seat(client: ControlClient, request: pytest.FixtureRequest) -> Iterator[Asker]:
    budget = getattr(request, "param", {})
    with listening(client, episode_spec(**budget)) as episode:
        asker = Asker(episode)
        with closing(asker.http):
            yield asker
