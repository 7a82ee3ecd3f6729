"""A settled reservation leaves exactly what was spent."""

from __future__ import annotations

from fumehood.core.ledger import Budget, BudgetKind, Exhausted, Ledger, Reservation

TOKENS, MONEY = BudgetKind.MODEL_TOKENS, BudgetKind.MODEL_MICROUSD


def ledger() -> Ledger:
    return Ledger(Budget(model_tokens=100, model_microusd=50))


def reserved_tokens(book: Ledger) -> Reservation:
    reservation = book.reserve({TOKENS: 40})
    assert isinstance(reservation, Reservation)
    return reservation


def test_unused_units_are_returned() -> None:
    book = ledger()
    book.settle(reserved_tokens(book), {TOKENS: 10})
    assert book.remaining() == {TOKENS: 90, MONEY: 50}


def test_a_kind_that_was_not_spent_is_returned_completely() -> None:
    book = ledger()
    book.settle(reserved_tokens(book), {})
    assert book.remaining() == {TOKENS: 100, MONEY: 50}


def test_a_kind_that_was_not_reserved_is_charged() -> None:
    book = ledger()
    book.settle(reserved_tokens(book), {TOKENS: 40, MONEY: 7})
    assert book.remaining() == {TOKENS: 60, MONEY: 43}


def test_more_than_was_reserved_is_charged() -> None:
    book = ledger()
    book.settle(reserved_tokens(book), {TOKENS: 130})
    assert (book.remaining()[TOKENS], book.spent(TOKENS)) == (0, 130)


def test_the_rest_is_reserved_once() -> None:
    book = ledger()
    rest = book.reserve_rest(MONEY)
    assert isinstance(rest, Reservation)
    assert rest.amounts == {MONEY: 50}
    assert book.reserve_rest(MONEY) == Exhausted(MONEY, 50, 50)
    assert book.exhausted is MONEY
    assert book.reserve_rest(BudgetKind.CALLS) is None
