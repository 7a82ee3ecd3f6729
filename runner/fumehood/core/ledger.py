"""Budgets: the limits of one seat, and the ledger that reserves and settles what it spends.

``BudgetKind`` is the only place that names the kinds. Files, the wire, the SDKs and the report use
the names of its members, and add none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from threading import Lock


class ChargedBy(Enum):
    """What causes a charge of a budget kind."""

    CALL = "call"
    """A tool call; see ``ChargeBudget``."""
    MODEL_CALL = "model call"
    """A model request through the gateway."""
    CLOCK = "clock"
    """Time that passes while the seat can act. A measured amount, so it is never in the trace."""


class BudgetKind(Enum):
    """A resource that a budget bounds. The value is its name in files and on the wire."""

    _value_: str
    charged_by: ChargedBy
    unit: str
    description: str

    def __new__(
        cls,
        name: str,
        charged_by: ChargedBy = ChargedBy.CALL,
        unit: str = "",
        description: str = "",
    ) -> BudgetKind:
        """Create a member from the parts of its definition."""
        kind = object.__new__(cls)
        kind._value_ = name
        kind.charged_by = charged_by
        kind.unit = unit
        kind.description = description
        return kind

    STEPS = "steps", ChargedBy.CALL, "steps", "Steps of the agent; each tool call is one step."
    CALLS = "calls", ChargedBy.CALL, "calls", "Tool calls."
    RETRIES = (
        "retries",
        ChargedBy.CALL,
        "failed calls",
        "Failed tool calls that are tolerated; one more ends the work.",
    )
    WALL_MS = (
        "wall_ms",
        ChargedBy.CLOCK,
        "milliseconds",
        "Wall time from the start of the episode, without the time in which other seats have "
        "the turn.",
    )
    ANSWER_BYTES = (
        "answer_bytes",
        ChargedBy.CALL,
        "bytes",
        "Size of all tool results together, as compact JSON in UTF-8.",
    )
    TOOL_MICROUSD = (
        "tool_microusd",
        ChargedBy.CALL,
        "millionths of a US dollar",
        "Price of all tool calls together, where the world states prices.",
    )
    MODEL_CALLS = "model_calls", ChargedBy.MODEL_CALL, "requests", "Requests to models."
    MODEL_TOKENS = (
        "model_tokens",
        ChargedBy.MODEL_CALL,
        "tokens",
        "Tokens of all model requests and responses together.",
    )
    MODEL_MICROUSD = (
        "model_microusd",
        ChargedBy.MODEL_CALL,
        "millionths of a US dollar",
        "Price of all model requests and responses together.",
    )

    # Members are singletons, and the ledger looks kinds up on every call: identity is fastest.
    __hash__ = object.__hash__


Amounts = Mapping[BudgetKind, int]
"""Units by kind."""


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """Inclusive upper bounds of one seat."""

    limits: Amounts
    """Bounds by kind. A kind without a bound is missing."""

    def __init__(self, /, **limits: int | None) -> None:
        """Set the bounds.

        Args:
            limits: bounds by the name of their kind, such as ``steps=12``; None means no bound.

        Raises:
            ValueError: a name is not that of a budget kind.
        """
        bounds = {BudgetKind(name): limit for name, limit in limits.items() if limit is not None}
        object.__setattr__(self, "limits", bounds)

    def __hash__(self) -> int:
        return hash(frozenset(self.limits.items()))

    def __getitem__(self, kind: BudgetKind) -> int | None:
        """Return the bound of ``kind``; None where it has no bound."""
        return self.limits.get(kind)

    def with_limits(self, /, **limits: int | None) -> Budget:
        """Return a budget in which ``limits`` replace the bounds of the same kinds."""
        return Budget(**{**self.to_json(), **limits})

    def to_json(self) -> dict[str, int]:
        """Return the bounds that are set, by name, in the order of ``BudgetKind``."""
        return {kind.value: self.limits[kind] for kind in BudgetKind if kind in self.limits}


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A reservation that the ledger rejected."""

    kind: BudgetKind
    limit: int
    spent: int
    """Settled and reserved units together, without those of this reservation."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted reservation, to be settled at most once; until then all of it counts as spent."""

    amounts: Amounts


class Ledger:
    """Counts what one seat spends.

    Every method is atomic: of N parallel reservations of one unit against a budget of one, exactly
    one is granted. Reserved units count as spent until they are settled.
    """

    def __init__(self, budget: Budget) -> None:
        self._limits = dict(budget.limits)
        self._spent = dict.fromkeys(BudgetKind, 0)
        self._meters: dict[BudgetKind, Callable[[], int]] = {}
        self._rejected: BudgetKind | None = None
        self._lock = Lock()

    def attach_meter(self, kind: BudgetKind, read: Callable[[], int]) -> None:
        """Measure ``kind`` instead of counting it.

        Args:
            kind: the kind to measure from now on.
            read: returns the units spent so far; never decreases.
        """
        self._meters[kind] = read

    def grant(self, kind: BudgetKind, amount: int) -> None:
        """Raise the limit of ``kind`` by ``amount`` units; does nothing where it has no limit."""
        with self._lock:
            if kind in self._limits:
                self._limits[kind] += amount

    def limit(self, kind: BudgetKind) -> int | None:
        """Return the limit of ``kind``, with all grants; None where it has none."""
        return self._limits.get(kind)

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted:
        """Reserve all of ``amounts`` (units per kind, not negative) or none of them.

        Returns:
            A reservation, or the first kind in the order of ``amounts`` that lacks the units.
        """
        spent, limits = self._spent, self._limits
        with self._lock:
            for kind, amount in amounts.items():
                if kind in limits and spent[kind] + amount > limits[kind]:
                    self._rejected = self._rejected or kind
                    return Exhausted(kind, limits[kind], spent[kind])
            for kind, amount in amounts.items():
                spent[kind] += amount
        return Reservation(amounts)

    def reserve_rest(self, kind: BudgetKind) -> Reservation | Exhausted | None:
        """Reserve all units left of ``kind``, at least one; None where it has no limit."""
        if kind not in self._limits:
            return None
        with self._lock:
            left = self._limits[kind] - self._spent[kind]
            if left <= 0:
                self._rejected = self._rejected or kind
                return Exhausted(kind, self._limits[kind], self._spent[kind])
            self._spent[kind] += left
        return Reservation({kind: left})

    def settle(self, reservation: Reservation, actual: Amounts) -> None:
        """Replace the reserved units by the units that were spent.

        Args:
            reservation: from :meth:`reserve`, not settled before.
            actual: units per kind. May exceed the reservation, because an effect cannot be undone.
        """
        with self._lock:
            for kind in {**reservation.amounts, **actual}:
                self._spent[kind] += actual.get(kind, 0) - reservation.amounts.get(kind, 0)

    def spent(self, kind: BudgetKind) -> int:
        """Return the units of ``kind`` that are settled, reserved or measured."""
        meter = self._meters.get(kind)
        return self._spent[kind] if meter is None else meter()

    def spent_on(self, kinds: Iterable[BudgetKind]) -> list[int]:
        """Return the units of several kinds that are settled or reserved, not those measured."""
        spent = self._spent
        return [spent[kind] for kind in kinds]

    def remaining(self, charged_by: ChargedBy | None = None) -> dict[BudgetKind, int]:
        """Return the units left of each kind that has a limit, never negative.

        Args:
            charged_by: only kinds with this cause; None for all kinds.
        """
        # This runs twice per call, so it calls no function for kinds without a meter.
        spent, meters = self._spent, self._meters
        left: dict[BudgetKind, int] = {}
        for kind, limit in self._limits.items():
            if charged_by is None or kind.charged_by is charged_by:
                units = limit - (meters[kind]() if kind in meters else spent[kind])
                left[kind] = units if units > 0 else 0
        return left

    @property
    def exhausted(self) -> BudgetKind | None:
        """The kind that ended the work: it rejected a reservation, or no steps are left."""
        if self._rejected is not None:
            return self._rejected
        limit = self._limits.get(BudgetKind.STEPS)
        no_step_left = limit is not None and self._spent[BudgetKind.STEPS] >= limit
        return BudgetKind.STEPS if no_step_left else None


def units_by_name(amounts: Amounts) -> dict[str, int]:
    """Return units by the names of their kinds."""
    # The property ``value`` takes five times as long.
    return {kind._value_: amount for kind, amount in amounts.items()}
