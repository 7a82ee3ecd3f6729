"""Charges every call to the seat's ledger before anything else happens to it."""

from __future__ import annotations

from runner.core.ledger import BudgetKind, Exhausted, Ledger
from runner.core.tools import Failure, FailureKind, Forward, Story, ToolCall, ToolResult, Value

_ONE_CALL = {BudgetKind.STEPS: 1, BudgetKind.CALLS: 1}
_ONE_STEP = {BudgetKind.STEPS: 1}
_ONE_RETRY = {BudgetKind.RETRIES: 1}


class Charged:
    """Reserves a step and a call before the effect, and a retry for every failure (spec parts 4.1, 4.6).

    A failure that no retry is left for is replaced by ``retry_exceeded``.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Admit the call if the budget does."""
        reservation = self._ledger.reserve(_ONE_CALL)
        if isinstance(reservation, Exhausted):
            # A call that is refused has still taken the agent's turn, as in the reference.
            self._ledger.reserve(_ONE_STEP)
            return Failure(FailureKind.OUT_OF_BUDGET, "budget_exceeded", "Episode budget exceeded.")
        result = forward(call)
        self._ledger.settle(reservation)
        if isinstance(result, Value):
            return result
        return self._charge_failure(result)

    def _charge_failure(self, failure: Failure) -> Failure:
        granted = self._ledger.reserve(_ONE_RETRY)
        if isinstance(granted, Exhausted):
            return _retries_exhausted(granted.limit, failure.code, failure.story)
        self._ledger.settle(granted)
        return failure


def _retries_exhausted(max_retries: int, code: str, story: Story) -> Failure:
    return Failure(
        FailureKind.OUT_OF_BUDGET,
        "retry_exceeded",
        "Retry budget exceeded.",
        {"max_retries": max_retries, "original_error_code": code},
        story,
    )
