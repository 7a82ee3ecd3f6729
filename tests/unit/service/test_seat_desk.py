"""Whatever breaks behind the desk: the agent hears that its work has ended, the orchestrator hears why."""

from __future__ import annotations

import logging
from threading import Lock

import pytest

from fumehood.core.conversation import TurnQueue
from fumehood.core.episode import Seat
from fumehood.core.ledger import Budget, Ledger
from fumehood.core.outcome import Refusal, RefusalKind
from fumehood.core.tools import ToolCall, ToolResult, ToolSpec
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from fumehood.testing.memory_recorder import MemoryRecorder
from fumehood.wire.ports import SpecRejected


class Cracked:
    """A toolset with a mistake in it."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        return ()

    def call(self, call: ToolCall) -> ToolResult:
        raise ZeroDivisionError("secret of the house")


@pytest.fixture
def broken() -> list[SpecRejected]:
    """What the orchestrator is told."""
    return []


@pytest.fixture
def desk(broken: list[SpecRejected]) -> SeatEndpoint:
    """One with a mistake behind it."""
    recorder = MemoryRecorder()
    return SeatEndpoint(
        Seat("agent", TurnQueue("Do it."), Cracked(), Ledger(Budget()), recorder),
        recorder=recorder,
        lock=Lock(),
        clock=MonotonicClock(),
        limits=SeatLimits(),
        on_broken=broken.append,
    )


def test_a_mistake_of_ours_ends_the_work_and_says_nothing(
    desk: SeatEndpoint,
    broken: list[SpecRejected],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A library that sets up logging for itself may have switched all loggers off.
    monkeypatch.setattr(logging.getLogger("fumehood.service"), "disabled", False)
    with caplog.at_level(logging.ERROR):
        assert desk.call("t", "{}", "") == Refusal(RefusalKind.ENDED)
    assert [why.field for why in broken] == ["world"]
    assert "ZeroDivisionError" in broken[0].reason
    assert "secret of the house" in caplog.text


def test_it_is_told_once_and_nothing_is_let_in_after_it(
    desk: SeatEndpoint, broken: list[SpecRejected]
) -> None:
    answers = [desk.call("t", "{}", name) for name in ("", "", "a", "a")]
    assert answers == [Refusal(RefusalKind.ENDED)] * 4
    assert len(broken) == 1
