"""Where an agent's messages arrive: checks their form, then lets them in one at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256
from threading import Condition, Lock

from fumehood.core.clock import Clock
from fumehood.core.episode import Reply, Seat
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Amounts, BudgetKind, Exhausted, Reservation
from fumehood.core.outcome import CallRefused, Finished, GaveUp, Refusal, RefusalKind, TimedOut
from fumehood.core.trace import ModelCalled, Recorder
from fumehood.service.arguments import SeatLimits, read_arguments, refuse_large
from fumehood.wire.ports import SpecRejected, TaskView

_ENDED = Refusal(RefusalKind.ENDED)

_log = logging.getLogger("fumehood.service")


class SeatEndpoint:
    """One seat of one episode. Safe to use from several threads; implements the wire's ``SeatPort``."""

    def __init__(
        self,
        seat: Seat,
        *,
        recorder: Recorder,
        lock: Lock,
        clock: Clock,
        limits: SeatLimits,
        on_broken: Callable[[SpecRejected], None],
        floor: Condition | None = None,
    ) -> None:
        """Take the desk.

        Args:
            seat: whose messages arrive here.
            recorder: takes refusals down.
            lock: shared by all seats of the episode: one call at a time.
            clock: measures the wall time from now on.
            limits: of what an agent sends.
            on_broken: told once when the world cannot go on.
            floor: over the same lock; notified when another seat of a conversation has the floor. None where
                the seat always has it.
        """
        self.name = seat.name
        self._seat = seat
        self._recorder = recorder
        self._lock = lock
        self._clock = clock
        self._floor = floor
        self._started_ns = clock.now_ns()
        self._waiting_since_ns = None if seat.has_floor else self._started_ns
        """When this seat last let another speak; its own time stands still until it has the floor again."""
        seat.ledger.attach_meter(BudgetKind.WALL_MS, self._elapsed_ms)
        self._limits = limits
        self._on_broken = on_broken
        self._refusals = 0
        self._is_closed = False
        self._answers: dict[str, tuple[bytes, Reply | Refusal]] = {}
        """Of calls with a name of their own: the digest of what was asked, and what was answered."""

    @property
    def waits_for_floor(self) -> bool:
        """Whether this seat takes turns with others, and what arrives here may have to wait for that."""
        return self._floor is not None

    def await_turn(self) -> bool:
        """Wait until this seat has the turn or its work has ended; return whether it can act."""
        with self._lock:
            self._await_floor()
            return not self._has_ended()

    def view_task(self) -> TaskView:
        """Return the task with what is left now."""
        seat = self._seat
        return TaskView(seat.instruction, seat.list_tools(), seat.ledger.remaining(), seat.turn)

    def call(self, tool_name: str, arguments_json: str, call_id: str) -> Reply | Refusal:
        """Carry out one call, or say why it was not let in."""
        arguments = (
            refuse_large(tool_name, self._limits.name_bytes)
            or refuse_large(call_id, self._limits.call_id_bytes)
            or read_arguments(arguments_json, self._limits)
        )
        with self._lock:
            self._await_floor()
            if isinstance(arguments, Refusal):
                return _ENDED if self._has_ended() else self._refuse(arguments)
            if call_id:
                return self._carry_out_once(call_id, tool_name, arguments_json, arguments)
            return _ENDED if self._has_ended() else self._carry_out(tool_name, arguments)

    def submit(self, end: Finished | GaveUp) -> bool | TaskView | Refusal:
        """End the seat's turn, which is its work where the user has no more to say."""
        text = end.answer if isinstance(end, Finished) else end.reason
        too_large = refuse_large(text, self._limits.answer_bytes)
        with self._lock:
            self._await_floor()
            if self._has_ended():
                return False
            if too_large is not None:
                return self._refuse(too_large)
            if isinstance(end, GaveUp):
                return self._seat.finish(end)
            self._seat.answer(end.answer)
            self._await_floor()
            return True if self._seat.end is not None else self.view_task()

    def bounds(self, kind: BudgetKind) -> bool:
        """Return whether the budget limits this kind."""
        return self._seat.ledger.limit(kind) is not None

    def is_out_of_time(self) -> bool:
        """Return whether the wall time is over."""
        limit_ms = self._seat.ledger.limit(BudgetKind.WALL_MS)
        return limit_ms is not None and self._elapsed_ms() >= limit_ms

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted | None:
        """Claim what a model may cost; None when the work has ended. A claim that is too large ends it."""
        with self._lock:
            return None if self._has_ended() else self._seat.reserve(amounts)

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Replace a claim by what was spent, as far as the budget goes; after the end nothing is told.

        Whoever reports more than there was to spend, by mistake or not, ends the budget and exceeds no bound.
        """
        with self._lock:
            if not self._is_closed:
                self._seat.settle(reservation, event, actual)

    def grant(self, granted_ms: int) -> None:
        """Give back wall time that our side has used up."""
        with self._lock:
            self._seat.ledger.grant(BudgetKind.WALL_MS, granted_ms)

    def close(self, *, timed_out: bool) -> None:
        """Let nothing in any more, whether or not the seat's work has ended.

        Args:
            timed_out: whether the work, if it has not ended, ends because its wall time is over.
        """
        with self._lock:
            if timed_out and self._seat.has_floor:
                # Else the others would go on without it, in no time, and one may win by that.
                self._seat.finish(self._timed_out(), ends_all=True)
            self._is_closed = True
            if self._floor is not None:
                self._floor.notify_all()

    def note_floor(self) -> None:
        """Note who has the floor now; to be called with the lock held."""
        now_ns = self._clock.now_ns()
        if not self._seat.has_floor:
            self._waiting_since_ns = self._waiting_since_ns or now_ns
        elif self._waiting_since_ns is not None:
            self._started_ns += now_ns - self._waiting_since_ns
            self._waiting_since_ns = None

    def _await_floor(self) -> None:
        """Wait, without the lock, until it is this seat's turn or its work has ended."""
        if self._floor is not None:
            self._floor.wait_for(lambda: self._seat.has_floor or self._has_ended())

    def _carry_out_once(
        self, call_id: str, tool_name: str, arguments_json: str, arguments: JsonObject
    ) -> Reply | Refusal:
        asked = sha256(f"{tool_name}\0{arguments_json}".encode("utf-8", "surrogatepass")).digest()
        known = self._answers.get(call_id)
        # Also after the end: an answer that was lost on its way can be asked for again.
        if known is not None and known[0] == asked:
            return known[1]
        if self._has_ended():
            return _ENDED
        if known is not None:
            return self._refuse(Refusal(RefusalKind.CALL_ID_REUSED))
        answer = self._carry_out(tool_name, arguments)
        self._answers[call_id] = (asked, answer)
        return answer

    def _carry_out(self, tool_name: str, arguments: JsonObject) -> Reply | Refusal:
        try:
            return self._seat.call(tool_name, arguments)
        except SpecError as error:
            return self._break_off(SpecRejected(error.field, error.reason))
        except Exception as error:
            # Ours, whatever it is. gRPC would tell the agent what it says, and the episode would go on.
            _log.exception("a world broke down")
            return self._break_off(SpecRejected("world", f"broke down: {error!r}"))

    def _break_off(self, why: SpecRejected) -> Refusal:
        self._is_closed = True
        self._on_broken(why)
        return _ENDED

    def _refuse(self, refusal: Refusal) -> Refusal:
        if self._refusals >= self._limits.refusals:
            return Refusal(RefusalKind.TOO_MANY_REFUSALS, self._limits.refusals, self._refusals)
        self._refusals += 1
        kind = refusal.kind.value
        self._recorder.record(CallRefused(self._seat.name, kind, refusal.limit, refusal.actual))
        return refusal

    def _has_ended(self) -> bool:
        if self._is_closed:
            return True
        if self._seat.end is None and self.is_out_of_time():
            self._seat.finish(self._timed_out())
        return self._seat.end is not None

    def _timed_out(self) -> TimedOut:
        return TimedOut(self._seat.ledger.limit(BudgetKind.WALL_MS) or 0)

    def _elapsed_ms(self) -> int:
        """Return the wall time that this seat has used, without the time in which it waited."""
        now_ns = self._waiting_since_ns or self._clock.now_ns()
        return (now_ns - self._started_ns) // 1_000_000
