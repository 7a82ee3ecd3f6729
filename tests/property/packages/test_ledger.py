"""No order of reservations and settlements exceeds a budget."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from fumehood.core.ledger import Budget, BudgetKind, Exhausted, Ledger, Reservation
from tests.property.packages.values import bounded

COUNTED = (BudgetKind.STEPS, BudgetKind.CALLS, BudgetKind.RETRIES)
LIMITS = st.none() | st.integers(min_value=0, max_value=12)
AMOUNTS = st.dictionaries(st.sampled_from(COUNTED), st.integers(min_value=0, max_value=4))


class Spending(RuleBasedStateMachine):
    """Reserves and settles in any order, and keeps the books beside the ledger."""

    granted = Bundle("granted")

    def __init__(self) -> None:
        super().__init__()
        self.limits: dict[BudgetKind, int | None] = dict.fromkeys(COUNTED)
        self.books = dict.fromkeys(COUNTED, 0)
        self.refused: BudgetKind | None = None
        self.ledger = Ledger(Budget())

    @rule(steps=LIMITS, calls=LIMITS, retries=LIMITS)
    def start_anew(self, steps: int | None, calls: int | None, retries: int | None) -> None:
        self.limits = dict(zip(COUNTED, (steps, calls, retries), strict=True))
        self.books = dict.fromkeys(COUNTED, 0)
        self.refused = None
        self.ledger = Ledger(Budget(steps=steps, calls=calls, retries=retries))

    @rule(target=granted, amounts=AMOUNTS)
    def reserve(self, amounts: Mapping[BudgetKind, int]) -> tuple[Ledger, Reservation | None]:
        fits = all(self._fits(kind, amount) for kind, amount in amounts.items())
        answer = self.ledger.reserve(amounts)
        if isinstance(answer, Exhausted):
            assert not fits
            first = next(kind for kind, amount in amounts.items() if not self._fits(kind, amount))
            assert (answer.kind, answer.limit) == (first, self.limits[first])
            assert answer.spent == self.books[first]
            self.refused = self.refused or first
            return self.ledger, None
        assert fits
        self._book(amounts, 1)
        return self.ledger, answer

    @rule(claim=consumes(granted), share=AMOUNTS)
    def settle(
        self, claim: tuple[Ledger, Reservation | None], share: Mapping[BudgetKind, int]
    ) -> None:
        ledger, reservation = claim
        if ledger is not self.ledger or reservation is None:
            return
        actual = {
            kind: min(share.get(kind, amount), amount)
            for kind, amount in reservation.amounts.items()
        }
        ledger.settle(reservation, actual)
        self._book(reservation.amounts, -1)
        self._book(actual, 1)

    @invariant()
    def nothing_is_overspent_and_the_books_agree(self) -> None:
        remaining = self.ledger.remaining()
        for kind, limit in self.limits.items():
            assert self.ledger.spent(kind) == self.books[kind]
            assert remaining.get(kind) == (None if limit is None else limit - self.books[kind])
            assert limit is None or 0 <= self.books[kind] <= limit

    @invariant()
    def the_first_rejected_kind_ends_the_work(self) -> None:
        steps = self.limits[BudgetKind.STEPS]
        used_up = steps is not None and self.books[BudgetKind.STEPS] >= steps
        assert self.ledger.exhausted == (self.refused or (BudgetKind.STEPS if used_up else None))

    def _fits(self, kind: BudgetKind, amount: int) -> bool:
        limit = self.limits[kind]
        return limit is None or self.books[kind] + amount <= limit

    def _book(self, amounts: Mapping[BudgetKind, int], sign: int) -> None:
        for kind, amount in amounts.items():
            self.books[kind] += sign * amount


Spending.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestSpending = Spending.TestCase


@settings(max_examples=25, deadline=None)
@given(limit=st.integers(min_value=0, max_value=6), threads=st.integers(min_value=2, max_value=8))
def test_parallel_reservations_are_granted_as_often_as_the_budget_allows(
    limit: int, threads: int
) -> None:
    ledger, together = Ledger(Budget(calls=limit)), Barrier(threads)

    def claim(_: int) -> bool:
        together.wait()
        return isinstance(ledger.reserve({BudgetKind.CALLS: 1}), Reservation)

    with ThreadPoolExecutor(threads) as pool:
        granted = list(pool.map(claim, range(threads)))
    assert sum(granted) == min(limit, threads)


@bounded
@given(
    limit=st.integers(min_value=1, max_value=6),
    used=st.lists(st.integers(min_value=0, max_value=4)),
)
def test_reserving_the_rest_returns_the_remaining_units(limit: int, used: list[int]) -> None:
    kind, left = BudgetKind.ANSWER_BYTES, limit
    ledger = Ledger(Budget(answer_bytes=limit))
    for amount in used:
        claim = ledger.reserve_rest(kind)
        if left <= 0:
            assert claim == Exhausted(kind, limit, limit - left)
            assert ledger.exhausted is kind
            return
        assert claim == Reservation({kind: left})
        ledger.settle(claim, {kind: amount})
        left -= amount


@bounded
@given(LIMITS, AMOUNTS, AMOUNTS)
def test_a_charge_above_its_reservation_is_counted(
    limit: int | None, claimed: Mapping[BudgetKind, int], actual: Mapping[BudgetKind, int]
) -> None:
    ledger = Ledger(Budget(retries=limit))
    reservation = ledger.reserve(claimed)
    if isinstance(reservation, Reservation):
        ledger.settle(reservation, actual)
        assert [ledger.spent(kind) for kind in COUNTED] == [actual.get(kind, 0) for kind in COUNTED]
        assert all(left >= 0 for left in ledger.remaining().values())
