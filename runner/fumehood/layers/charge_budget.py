"""Charges every call to the ledger of the seat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fumehood.core.json_values import json_bytes
from fumehood.core.ledger import BudgetKind, Exhausted, Ledger, Reservation
from fumehood.core.tools import (
    Failure,
    FailureKind,
    Forward,
    ToolCall,
    ToolResult,
    Value,
)

_ONE_CALL = {BudgetKind.STEPS: 1, BudgetKind.CALLS: 1}
_ONE_STEP = {BudgetKind.STEPS: 1}
_ONE_RETRY = {BudgetKind.RETRIES: 1}


class ChargeBudget:
    """Reserves a step and a call before the effect, and a retry for every failure.

    Source: docs/reference/toolmisuse.md, Order of a call and Budgets.

    If results have a size limit, the whole remainder is reserved and passed to the tool, and the
    actual size is settled afterwards. If no retry is left, a failure is replaced by
    ``retry_exceeded``.
    """

    def __init__(self, ledger: Ledger, price_microusd: Callable[[str], int] | None = None) -> None:
        """Create the layer.

        Args:
            ledger: of the seat.
            price_microusd: returns the price of one call of a tool; None if calls cost nothing.
        """
        self._ledger = ledger
        self._price_microusd = price_microusd

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Forward the call if the budget admits it."""
        amounts = _ONE_CALL
        if self._price_microusd is not None:
            price = self._price_microusd(call.tool_name)
            amounts = {**_ONE_CALL, BudgetKind.TOOL_MICROUSD: price}
        reservation = self._ledger.reserve(amounts)
        if isinstance(reservation, Exhausted):
            # A rejected call also takes a step, as in ToolMisuseBench.
            self._ledger.reserve(_ONE_STEP)
            return _not_admitted()
        bytes_left = self._ledger.reserve_rest(BudgetKind.ANSWER_BYTES)
        if isinstance(bytes_left, Exhausted):
            return _not_admitted()
        result = (
            forward(call) if bytes_left is None else self._answer_within(bytes_left, call, forward)
        )
        if isinstance(result, Value):
            return result
        return self._charge_failure(result)

    def _answer_within(
        self, bytes_left: Reservation, call: ToolCall, forward: Forward
    ) -> ToolResult:
        kind = BudgetKind.ANSWER_BYTES
        result = forward(replace(call, answer_bytes_max=bytes_left.amounts[kind]))
        used = json_bytes(result.output) if isinstance(result, Value) else 0
        self._ledger.settle(bytes_left, {kind: used})
        return result

    def _charge_failure(self, failure: Failure) -> Failure:
        granted = self._ledger.reserve(_ONE_RETRY)
        if isinstance(granted, Exhausted):
            return _retries_exhausted(granted.limit, failure)
        return failure


def _not_admitted() -> Failure:
    return Failure(FailureKind.OUT_OF_BUDGET, "budget_exceeded", "Episode budget exceeded.")


def _retries_exhausted(max_retries: int, replaced: Failure) -> Failure:
    return Failure(
        FailureKind.OUT_OF_BUDGET,
        "retry_exceeded",
        "Retry budget exceeded.",
        {"max_retries": max_retries, "original_error_code": replaced.code},
        replaced.fired_faults,
        replaced.kind,
    )
