from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from fumehood.service.seat_endpoint import SeatLimits
from tests.conformance.seats.seated import Seated, seated
from tests.conformance.seats.ways import WAYS
from tests.parts.specs import episode_spec

SitDown = Callable[..., Seated]


@pytest.fixture(params=WAYS)
def sit_down(request: pytest.FixtureRequest) -> Iterator[SitDown]:
    """Every way; takes what ``episode_spec`` takes, and limits."""
    with ExitStack() as stack:

        def sit(*faults: Any, limits: SeatLimits | None = None, **spec: Any) -> Seated:
            return stack.enter_context(
                seated(request.param, episode_spec(*faults, **spec), limits or SeatLimits())
            )

        yield sit
