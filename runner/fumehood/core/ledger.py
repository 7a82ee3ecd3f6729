"""Budgets: what an agent may spend, reserved before the effect and settled after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from threading import Lock

from fumehood.core.json_values import JsonObject


class BudgetKind(Enum):
    """What can be spent. The value names the unit where it is not a count."""

    STEPS = "steps"
    CALLS = "calls"
    RETRIES = "retries"
    WALL_MS = "wall_ms"
    ANSWER_BYTES = "answer_bytes"
    MODEL_CALLS = "model_calls"
    MODEL_TOKENS = "model_tokens"
    MODEL_MICROUSD = "model_microusd"

    # Members are singletons, and the ledger looks kinds up on every call: by identity is fastest.
    __hash__ = object.__hash__


Amounts = Mapping[BudgetKind, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Inclusive upper bounds; None means no bound."""

    steps: int | None = None
    calls: int | None = None
    retries: int | None = None
    """Failed calls that are tolerated; one more ends the work."""
    wall_ms: int | None = None
    answer_bytes: int | None = None
    """Of all answers together, as compact JSON in UTF-8; a world that can cuts its answer to what is left."""
    model_calls: int | None = None
    model_tokens: int | None = None
    """Of requests and answers together."""
    model_microusd: int | None = None
    """What they cost, millionths of a dollar."""

    def limits(self) -> dict[BudgetKind, int]:
        """Return the counted bounds that are set; wall time is measured, not counted."""
        bounds = {
            kind: getattr(self, kind.value) for kind in BudgetKind if kind is not BudgetKind.WALL_MS
        }
        return {kind: limit for kind, limit in bounds.items() if limit is not None}

    def to_json(self) -> JsonObject:
        """Return the bounds that are set, by name."""
        bounds = {kind.value: getattr(self, kind.value) for kind in BudgetKind}
        return {name: bound for name, bound in bounds.items() if bound is not None}


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A reservation that was not granted."""

    kind: BudgetKind
    limit: int
    spent: int
    """Settled and reserved together, without what was asked for."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted claim, to be settled exactly once."""

    amounts: Amounts


class Ledger:
    """Counts what one seat spends.

    Every method is atomic: of N parallel reservations of one unit against a budget of one, exactly one is
    granted. What is reserved counts as spent until it is settled.
    """

    def __init__(self, budget: Budget) -> None:
        self._limits = budget.limits()
        self._spent = dict.fromkeys(BudgetKind, 0)
        self._refused: BudgetKind | None = None
        self._lock = Lock()

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted:
        """Claim all of ``amounts`` (units per kind, not negative) or none of them.

        Returns:
            A reservation, or the first kind in the order of ``amounts`` that does not admit its amount.
        """
        spent, limits = self._spent, self._limits
        with self._lock:
            for kind, amount in amounts.items():
                if kind in limits and spent[kind] + amount > limits[kind]:
                    self._refused = self._refused or kind
                    return Exhausted(kind, limits[kind], spent[kind])
            for kind, amount in amounts.items():
                spent[kind] += amount
        return Reservation(amounts)

    def reserve_rest(self, kind: BudgetKind) -> Reservation | Exhausted | None:
        """Claim all that is left of ``kind``, at least one unit; None where it has no bound."""
        if kind not in self._limits:
            return None
        with self._lock:
            left = self._limits[kind] - self._spent[kind]
            if left <= 0:
                self._refused = self._refused or kind
                return Exhausted(kind, self._limits[kind], self._spent[kind])
            self._spent[kind] += left
        return Reservation({kind: left})

    def settle(self, reservation: Reservation, actual: Amounts | None = None) -> None:
        """Replace what was reserved by what was really spent.

        Args:
            reservation: from :meth:`reserve`, not settled before.
            actual: units per kind; None means exactly what was reserved. May exceed the reservation,
                because an effect that happened has happened.
        """
        if actual is None:
            return
        with self._lock:
            for kind in {**reservation.amounts, **actual}:
                self._spent[kind] += actual.get(kind, 0) - reservation.amounts.get(kind, 0)

    def spent(self, kind: BudgetKind) -> int:
        """Return the units of ``kind`` that are settled or reserved."""
        return self._spent[kind]

    def remaining(self) -> dict[BudgetKind, int]:
        """Return what is left of each bounded kind, never negative."""
        spent = self._spent
        return {kind: max(0, limit - spent[kind]) for kind, limit in self._limits.items()}

    @property
    def exhausted(self) -> BudgetKind | None:
        """The kind that ended the work: one that refused a reservation, or steps when none is left."""
        if self._refused is not None:
            return self._refused
        limit = self._limits.get(BudgetKind.STEPS)
        return (
            BudgetKind.STEPS
            if limit is not None and self._spent[BudgetKind.STEPS] >= limit
            else None
        )
