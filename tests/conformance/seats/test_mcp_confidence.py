"""Over MCP, the tools that end the work take a confidence only if the run asks for one."""

from __future__ import annotations

import pytest

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.ledger import Budget
from fumehood.service.seat_endpoint import SeatLimits
from tests.conformance.seats.http_ways import http_served
from tests.conformance.seats.seated import seated
from tests.parts.folders import short_folder
from tests.parts.mcp import McpSeat
from tests.parts.specs import episode_spec


@pytest.mark.parametrize("asks", [False, True])
def test_the_listed_arguments_depend_on_the_question(asks: bool) -> None:
    asked = SeatSpec(instruction="Do it.", budget=Budget(), asks_confidence=asks)
    with (
        seated("directly", episode_spec(seats=[asked]), SeatLimits()) as seat,
        short_folder() as directory,
        http_served(seat.endpoint, directory),
    ):
        client = McpSeat(directory)
        *_, submit, give_up = client.request("tools/list")["result"]["tools"]
        client.close()
    further = ["confidence"] if asks else []
    assert list(submit["inputSchema"]["properties"]) == ["answer", *further]
    assert list(give_up["inputSchema"]["properties"]) == ["reason", *further]
