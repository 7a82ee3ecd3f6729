"""What the gateway needs of the seat that pays; the room above implements it."""

from __future__ import annotations

from typing import Protocol

from fumehood.core.ledger import Amounts, BudgetKind, Exhausted, Reservation
from fumehood.core.trace import ModelCalled, ModelExchange


class BudgetPort(Protocol):
    """One seat's. Safe to use from several threads; nothing here waits for long."""

    name: str
    """Of the seat."""

    def bounds(self, kind: BudgetKind) -> bool:
        """Return whether this kind is bounded at all."""
        ...

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted | None:
        """Claim what a call may cost; None when the work has ended."""
        ...

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Replace a claim by what was spent, and write the call down."""
        ...

    def grant(self, granted_ms: int) -> None:
        """Give back wall time that our side has used up."""
        ...

    def keep(self, exchange: ModelExchange) -> None:
        """Hand an exchange to whoever keeps the cassette."""
        ...

    def break_off(self, reason: str) -> None:
        """End the episode because no model can be asked; it is nobody's failure but ours."""
        ...
