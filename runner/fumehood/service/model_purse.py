"""A seat's desk and its episode's outbox, as the gateway needs them."""

from __future__ import annotations

from fumehood.core.ledger import Amounts, BudgetKind, Exhausted, Reservation
from fumehood.core.trace import ModelCalled, ModelExchange
from fumehood.service.seat_endpoint import SeatEndpoint
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.ports import MODELS_FIELD, SpecRejected, TimeGranted


class ModelPurse:
    """Implements the gateway's ``BudgetPort``."""

    def __init__(self, desk: SeatEndpoint, outbox: TraceStream) -> None:
        self.name = desk.name
        self._desk = desk
        self._outbox = outbox

    def bounds(self, kind: BudgetKind) -> bool:
        """Return whether this kind is bounded at all."""
        return self._desk.bounds(kind)

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted | None:
        """Claim what a call may cost; None when the work has ended."""
        return self._desk.reserve(amounts)

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Replace a claim by what was spent, and write the call down."""
        self._desk.settle(reservation, event, actual)

    def grant(self, granted_ms: int) -> None:
        """Give back wall time that our side has used up, at the desk and where the box is watched."""
        self._desk.grant(granted_ms)
        self._outbox.post(TimeGranted(self.name, granted_ms))

    def keep(self, exchange: ModelExchange) -> None:
        """Send an exchange to whoever keeps the cassette."""
        self._outbox.post(exchange)

    def break_off(self, reason: str) -> None:
        """End the episode because no model can be asked."""
        self._outbox.close(SpecRejected(MODELS_FIELD, reason))
