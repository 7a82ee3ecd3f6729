"""How much one reader may take: calls and bytes, reserved before an answer and settled after it."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from fumehood_snapshots.errors import Refusal, RefusalCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Inclusive upper bounds; None means no bound."""

    calls: int | None = None
    answer_bytes: int | None = None
    """Of all answers together, as compact JSON in UTF-8."""


class AllowanceLedger:
    """Counts what was taken; of N parallel calls on an allowance of one, exactly one is admitted."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._calls = 0
        self._bytes = 0
        self._lock = Lock()

    def reserve(self, answer_bytes_max: int) -> int:
        """Claim one call and room for its answer.

        Args:
            answer_bytes_max: the most this answer may have.

        Returns:
            How many bytes the answer may have: as asked, or what is left.

        Raises:
            Refusal: no call or no byte is left.
        """
        with self._lock:
            calls, total = self._allowance.calls, self._allowance.answer_bytes
            if calls is not None and self._calls >= calls:
                raise Refusal(RefusalCode.ALLOWANCE_SPENT, f"all {calls} calls are spent")
            granted = (
                answer_bytes_max if total is None else min(answer_bytes_max, total - self._bytes)
            )
            if granted <= 0:
                raise Refusal(
                    RefusalCode.ALLOWANCE_SPENT, f"all {total} bytes of answers are spent"
                )
            self._calls += 1
            self._bytes += granted
            return granted

    def settle(self, granted: int, used: int) -> None:
        """Replace what was reserved for an answer by what it really has."""
        with self._lock:
            self._bytes += used - granted

    @property
    def spent(self) -> Allowance:
        """Calls and bytes that are settled or reserved."""
        with self._lock:
            return Allowance(calls=self._calls, answer_bytes=self._bytes)
