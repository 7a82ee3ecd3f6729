"""The endpoint of one seat: checks untrusted input, executes calls once, measures wall time.

``core.episode.Seat`` executes the call and keeps the turns and the budget.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from threading import Condition, Event, Lock
from typing import TypeVar

from fumehood.core.clock import Clock
from fumehood.core.episode import Reply, Seat
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, finite_number, no_constant
from fumehood.core.ledger import Amounts, BudgetKind, Exhausted, Reservation
from fumehood.core.outcome import (
    AgentCrashed,
    CallRefused,
    ConfidenceStated,
    Finished,
    GaveUp,
    ModelProblem,
    Refusal,
    RefusalKind,
    Stopped,
    TimedOut,
)
from fumehood.core.shared_time import WorkEnded
from fumehood.core.trace import (
    PERMISSION_ANSWERS,
    ModelCalled,
    ModelProblemNoted,
    ModelRefused,
    ProviderChecked,
    Recorder,
)
from fumehood.monitors.review import MonitorsBroken
from fumehood.wire.ports import MONITORS_FIELD, SpecRejected, TaskView

T = TypeVar("T")

_ENDED = Refusal(RefusalKind.ENDED)
_MALFORMED = Refusal(RefusalKind.MALFORMED)

_TITLE_CHARACTERS_MAX = 500
"""Characters of the title of a recorded permission request."""
PERMISSIONS_MAX = 1000
"""Answers to permission requests of one seat that the trace records. They are no refusals, so they
have an own limit."""

REFUSED_BYTES_PER_S = 16 * 1024 * 1024
"""Rate at which one seat gets replies to refused messages. Reading them costs processor time that
other episodes need, and no budget limits their number."""
_SHORTEST_DELAY_S = 0.001

_log = logging.getLogger("fumehood.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatLimits:
    """Limits of the messages of one seat. Every limit is inclusive."""

    argument_bytes: int = 1024 * 1024
    """Size of the arguments of one call, as UTF-8."""
    argument_depth: int = 64
    """Levels of objects and lists in the arguments of one call, including the outermost."""
    name_bytes: int = 1024
    """Size of a tool name, as UTF-8."""
    call_id_bytes: int = 64
    """Size of a call ID, as UTF-8."""
    answer_bytes: int = 1024 * 1024
    """Size of a submitted answer or reason, as UTF-8."""
    refusals: int = 1000
    """Refused messages of one seat that the trace records. Every later refusal is
    TOO_MANY_REFUSALS."""
    refused_bytes: int = 64 * 1024 * 1024
    """Size of all refused and malformed messages of one seat. Beyond it the work of the seat ends,
    and its sockets close."""
    trace_bytes: int = 128 * 1024 * 1024
    """Size of the events of one episode, each with ``RECORD_BYTES``. Beyond it the work of the seat
    ends, and its sockets close."""


class _Messages:
    """A context manager that counts the messages of a seat."""

    def __init__(self) -> None:
        self.begun = 0
        self.running = 0
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.begun += 1
            self.running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.running -= 1


class SeatEndpoint:
    """Implements the wire's ``SeatPort`` for one seat. Safe to use from several threads."""

    def __init__(
        self,
        seat: Seat,
        *,
        recorder: Recorder,
        lock: Lock,
        clock: Clock,
        limits: SeatLimits,
        on_broken: Callable[[SpecRejected], None],
        on_flood: Callable[[SeatEndpoint, str], object] = lambda endpoint, detail: None,
        turn_changed: Condition | None = None,
        asks_confidence: bool = False,
        begun: Event | None = None,
    ) -> None:
        """Create the endpoint; the wall time of the seat starts with the first message.

        Until then the agent does not know its task, and its box may still be starting.

        Args:
            seat: executes the calls.
            recorder: receives the refusals.
            lock: shared by all seats of the episode, so that one call is executed at a time.
            clock: measures the wall time.
            limits: limits of the agent's messages.
            on_broken: called once if the world cannot continue.
            on_flood: called once, with the reason, if the refused messages are too large together;
                must not block.
            turn_changed: uses the same lock; notified when another seat of a conversation gets the
                turn. None if the seat always has the turn.
            asks_confidence: whether the agent is asked for its confidence. A last line of a
                submission that states it, such as ``Confidence: 80 %``, is then not part of the
                answer.
            begun: set when the episode has begun, before which every message waits; None if it
                begins at once.
        """
        self.name = seat.name
        self._seat = seat
        self._recorder = recorder
        self._lock = lock
        self._clock = clock
        self._turn_changed = turn_changed
        self._asks_confidence = asks_confidence
        self._begun = begun
        self._started_ns: int | None = None
        """Time of the first message; None before it."""
        self._waiting_since_ns: int | None = None
        """Start of the current pause of the wall time, while another seat has the turn; None if the
        wall time is running."""
        seat.ledger.attach_meter(BudgetKind.WALL_MS, self._elapsed_ms)
        self._limits = limits
        self._on_broken = on_broken
        self._on_flood = on_flood
        self._messages = _Messages()
        self._refusals = 0
        self._permissions = 0
        self._refused_bytes = 0
        self._next_refusal_s = 0.0
        """Time of the monotonic clock before which no further refused message gets its reply."""
        self._refused_lock = Lock()
        """Not ``lock``, which a call holds while the world executes it."""
        self._is_closed = False
        self._open_model_calls = 0
        """Reserved model calls whose requests are not settled."""
        self._replies: dict[str, tuple[bytes, Reply | Refusal]] = {}
        """By call ID: the digest of the request, and its reply."""

    @property
    def takes_turns(self) -> bool:
        """Whether this seat takes turns with others, so that its requests may have to wait."""
        return self._turn_changed is not None

    def await_begin(self) -> None:
        """Wait until the episode has begun or is closed."""
        if self._begun is not None:
            self._begun.wait()

    def await_turn(self) -> bool:
        """Wait until this seat has the turn or its work has ended; return whether it can act."""
        with self._lock:
            self._wait_for_turn()
            return not self._has_ended()

    def view_task(self) -> TaskView:
        """Return the task with the units left now."""
        self._start_clock()
        seat = self._seat
        tools, remaining = seat.list_tools(), seat.ledger.remaining()
        return TaskView(
            seat.instruction,
            tools,
            remaining,
            seat.turn,
            self._asks_confidence,
            self._is_closed or seat.end is not None,
        )

    def call(self, tool_name: str, arguments_json: str, call_id: str) -> Reply | Refusal:
        """Execute one call, or refuse it."""
        self._start_clock()
        arguments = (
            refuse_large(tool_name, self._limits.name_bytes)
            or refuse_large(call_id, self._limits.call_id_bytes)
            or read_arguments(arguments_json, self._limits)
        )
        if isinstance(arguments, Refusal):
            self._delay_refusal(len(tool_name) + len(arguments_json) + len(call_id))
        with self._messages, self._lock:
            self._wait_for_turn()
            if isinstance(arguments, Refusal):
                return _ENDED if self._has_ended() else self._refuse(arguments)
            if call_id:
                return self._execute_once(call_id, tool_name, arguments_json, arguments)
            return _ENDED if self._has_ended() else self._execute(tool_name, arguments)

    def submit(
        self, end: Finished | GaveUp | Stopped, confidence: float | None = None
    ) -> bool | TaskView | Refusal:
        """End the turn of the seat, or its work if the user sends no further message."""
        self._start_clock()
        match end:
            case Finished(text) | GaveUp(text):
                pass
            case Stopped():
                text, confidence = "", None
        refusal = refuse_large(text, self._limits.answer_bytes)
        if confidence is not None and not 0 <= confidence <= 1:
            refusal = _MALFORMED
        if refusal is not None:
            self._delay_refusal(len(text))
        elif confidence is None and self._asks_confidence:
            text, confidence = split_confidence(text)
        with self._messages, self._lock:
            self._wait_for_turn()
            if self._has_ended():
                return False
            if refusal is not None:
                return self._refuse(refusal)
            if confidence is not None:
                self._recorder.record(ConfidenceStated(self.name, float(confidence)))
            match end:
                case GaveUp():
                    return self._seat.finish(GaveUp(text))
                case Stopped():
                    return self._seat.finish(end)
            answered = self._contained("an answer", lambda: self._seat.answer(text))
            if isinstance(answered, Refusal):
                return False
            self._wait_for_turn()
            return True if self._seat.end is not None else self.view_task()

    def count_refused(self, size_bytes: int) -> None:
        """Count a refused or malformed message; too many bytes end the work of the seat."""
        with self._refused_lock:
            before = self._refused_bytes
            self._refused_bytes += size_bytes
        if before <= self._limits.refused_bytes < before + size_bytes:
            limit_bytes = self._limits.refused_bytes
            self._on_flood(self, f"it sent more than {limit_bytes} bytes of refused messages")

    def _delay_refusal(self, size_bytes: int) -> None:
        """Count a refused message, and wait until its reply is due at ``REFUSED_BYTES_PER_S``."""
        self.count_refused(size_bytes)
        with self._refused_lock:
            now_s = time.monotonic()
            due_s = max(now_s, self._next_refusal_s) + size_bytes / REFUSED_BYTES_PER_S
            self._next_refusal_s = due_s
        if due_s - now_s >= _SHORTEST_DELAY_S:
            time.sleep(due_s - now_s)

    def end_flood(self, detail: str) -> None:
        """End the work of this seat, and of all seats, because it sent too many bytes."""
        with self._lock:
            self._seat.finish(AgentCrashed(detail), ends_all=True)
            self._is_closed = True

    def has_limit(self, kind: BudgetKind) -> bool:
        """Return whether the budget limits this kind."""
        return self._seat.ledger.limit(kind) is not None

    def message_counts(self) -> tuple[int, int]:
        """Return how many calls and submissions have begun, and how many are running."""
        return self._messages.begun, self._messages.running

    def is_out_of_time(self) -> bool:
        """Return whether the wall time is used up."""
        limit_ms = self._seat.ledger.limit(BudgetKind.WALL_MS)
        return limit_ms is not None and self._elapsed_ms() >= limit_ms

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted | None:
        """Reserve the cost of a model request; None if the work has ended.

        A rejected reservation ends the work.
        """
        self._start_clock()
        with self._lock:
            reservation = None if self._has_ended() else self._seat.reserve(amounts)
            if isinstance(reservation, Reservation):
                self._open_model_calls += amounts.get(BudgetKind.MODEL_CALLS, 0)
            return reservation

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Charge and record the actual cost of a model request, unless the endpoint is closed."""
        with self._lock:
            if not self._is_closed:
                self._open_model_calls -= reservation.amounts.get(BudgetKind.MODEL_CALLS, 0)
                self._seat.settle(reservation, event, actual)

    @property
    def is_monitored(self) -> bool:
        """Whether the episode has monitors."""
        return self._seat.is_monitored

    def review(
        self, model: str, request: JsonObject, answered: tuple[int, JsonObject] | None = None
    ) -> tuple[int, JsonObject] | None:
        """Ask the monitors about a model request; see ``Seat.review``. None if the work has
        ended."""
        with self._lock:
            if self._has_ended():
                return None
            try:
                number, decision = self._seat.review(model, request, answered)
            except MonitorsBroken as error:
                self._abort(SpecRejected(MONITORS_FIELD, str(error)))
                return None
            return None if self._has_ended() else (number, decision)

    def note(self, event: ModelRefused | ProviderChecked | ModelProblemNoted) -> bool:
        """Record a problem with a model, unless the seat has ended or had too many; return
        whether it was recorded."""
        with self._lock:
            if self._has_ended() or self._refusals >= self._limits.refusals:
                return False
            self._refusals += 1
            self._recorder.record(event)
            return True

    def report(self, problem: ModelProblem) -> bool:
        """Record a problem that the agent had with its model."""
        self._start_clock()
        return self.note(ModelProblemNoted(self.name, problem, "agent"))

    def report_permission(self, title: str, answer: str) -> bool:
        """Record how the client of the agent answered a permission request."""
        self._start_clock()
        with self._lock:
            if self._has_ended() or self._permissions >= PERMISSIONS_MAX:
                return False
            if answer not in PERMISSION_ANSWERS:
                return False
            self._permissions += 1
            self._seat.record_permission(title[:_TITLE_CHARACTERS_MAX], answer)
            return True

    def grant(self, granted_ms: int) -> None:
        """Extend the wall time by a delay that the infrastructure caused."""
        with self._lock:
            self.credit(granted_ms)

    def credit(self, granted_ms: int) -> None:
        """Extend the wall time as ``grant`` does. The caller holds the lock."""
        self._seat.ledger.grant(BudgetKind.WALL_MS, granted_ms)

    def close(self, *, timed_out: bool) -> None:
        """Refuse all further messages; with ``timed_out`` also end the work of the seat with the
        turn. In a conversation, record that the seat has open model requests."""
        with self._lock:
            if timed_out and self._seat.has_turn:
                # All seats end: otherwise the others would continue, and one of them could
                # succeed because this seat ran out of time.
                self._seat.finish(self._timed_out(), ends_all=True)
            was_closed, self._is_closed = self._is_closed, True
            if self._turn_changed is not None:
                if self._open_model_calls and not was_closed:
                    # An open request may be the reason that another seat failed.
                    self._recorder.record(
                        ModelRefused(seat=self.name, reason=RefusalKind.ENDED.value)
                    )
                self._turn_changed.notify_all()

    def update_turn(self) -> None:
        """Pause or resume the wall time after a change of the turn. The caller holds the lock."""
        if self._started_ns is None:
            return
        now_ns = self._clock.now_ns()
        if not self._seat.has_turn:
            self._waiting_since_ns = self._waiting_since_ns or now_ns
        elif self._waiting_since_ns is not None:
            self._started_ns += now_ns - self._waiting_since_ns
            self._waiting_since_ns = None

    def _wait_for_turn(self) -> None:
        """Release the lock and wait until this seat has the turn or its work has ended."""
        if self._turn_changed is not None:
            self._turn_changed.wait_for(lambda: self._seat.can_act or self._has_ended())

    def _execute_once(
        self, call_id: str, tool_name: str, arguments_json: str, arguments: JsonObject
    ) -> Reply | Refusal:
        digest = sha256(f"{tool_name}\0{arguments_json}".encode("utf-8", "surrogatepass")).digest()
        known = self._replies.get(call_id)
        # Also after the end of the work: an agent can request a lost response again.
        if known is not None and known[0] == digest:
            return known[1]
        if self._has_ended():
            return _ENDED
        if known is not None:
            return self._refuse(Refusal(RefusalKind.CALL_ID_REUSED))
        reply = self._execute(tool_name, arguments)
        self._replies[call_id] = (digest, reply)
        return reply

    def _execute(self, tool_name: str, arguments: JsonObject) -> Reply | Refusal:
        return self._contained("a call", lambda: self._seat.call(tool_name, arguments))

    def _contained(self, what: str, act: Callable[[], T]) -> T | Refusal:
        """Let the seat act; a refusal if its work has ended, or ends with an exception."""
        try:
            return act()
        except WorkEnded:
            return _ENDED
        except SpecError as error:
            return self._abort(SpecRejected(error.field, error.reason))
        except MonitorsBroken as error:
            return self._abort(SpecRejected(MONITORS_FIELD, str(error)))
        except InfraError as error:
            return self._abort(SpecRejected("world", f"cannot continue: {error}"))
        except Exception as error:
            # The layers contain exceptions of the world. Anything else follows from the arguments,
            # from the answer or from the state that the agent's calls made, and must not void the
            # attempt. No agent may read the exception.
            _log.exception("%s cannot be recorded", what)
            detail = f"{what} cannot be recorded: {type(error).__name__}"
            self._seat.finish(AgentCrashed(detail), ends_all=True)
            return _ENDED

    def _abort(self, rejection: SpecRejected) -> Refusal:
        self._is_closed = True
        self._on_broken(rejection)
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

    def _start_clock(self) -> None:
        if self._started_ns is not None:
            return
        # The only wait for the episode: every message that shows or changes the task comes here.
        self.await_begin()
        with self._lock:
            if self._started_ns is None:
                self._started_ns = self._clock.now_ns()
                self._waiting_since_ns = None if self._seat.has_turn else self._started_ns

    def _timed_out(self) -> TimedOut:
        return TimedOut(self._seat.ledger.limit(BudgetKind.WALL_MS) or 0)

    def _elapsed_ms(self) -> int:
        """Return the wall time that this seat has used, without pauses."""
        if self._started_ns is None:
            return 0
        now_ns = self._waiting_since_ns or self._clock.now_ns()
        return (now_ns - self._started_ns) // 1_000_000


_STATED = re.compile(
    r"^[\s*_`]*confidence[\s*_`]*[:=][\s*_`]*"
    r"([0-9]{1,3}(?:\.[0-9]{1,9})?) {0,9}(%?)[\s*_`.]*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""A last line such as ``Confidence: 0.8`` or ``Confidence: 80 %``, also with marks of emphasis."""
LAST_CHARACTERS = 200
"""Number of characters at the end of a submission in which a confidence may begin."""


def split_confidence(text: str) -> tuple[str, float | None]:
    """Return a text without the last line that states a confidence, and the confidence, 0 to 1.

    A number above 1 is in per cent. If the last line states no confidence, the confidence is None
    and the text is complete.
    """
    stated = _STATED.search(text, max(0, len(text) - LAST_CHARACTERS))
    if stated is None:
        return text, None
    number = float(stated[1])
    confidence = number / 100 if stated[2] or number > 1 else number
    if confidence > 1:
        return text, None
    return text[: stated.start()].rstrip(), confidence


_decoder = json.JSONDecoder(parse_constant=no_constant, parse_float=finite_number)


def read_arguments(text: str, limits: SeatLimits) -> JsonObject | Refusal:
    """Parse the arguments of a call, one JSON object, or refuse them; empty text means none."""
    if not text:
        return {}
    too_large = refuse_large(text, limits.argument_bytes)
    if too_large is not None:
        return too_large
    try:
        value: Json = _decoder.decode(text)
    except RecursionError:
        # The interpreter's stack is exhausted, which takes far more levels than any useful limit.
        return Refusal(RefusalKind.TOO_DEEP, limits.argument_depth, _brackets(text))
    except ValueError:
        return _MALFORMED
    if not isinstance(value, dict):
        return _MALFORMED
    # Check the depth first, because the check for surrogates recurses.
    return (
        _refuse_deep(text, value, limits.argument_depth) or _refuse_surrogates(text, value) or value
    )


def _refuse_deep(text: str, value: JsonObject, limit: int) -> Refusal | None:
    # Each level needs an opening bracket, so most calls need no traversal.
    depth = _depth(value) if _brackets(text) > limit else 0
    return Refusal(RefusalKind.TOO_DEEP, limit, depth) if depth > limit else None


def refuse_large(text: str, limit_bytes: int) -> Refusal | None:
    """Refuse a text that is longer than ``limit_bytes`` as UTF-8."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return Refusal(RefusalKind.TOO_LARGE, limit_bytes, size) if size > limit_bytes else None


def _brackets(text: str) -> int:
    return text.count("{") + text.count("[")


def _depth(value: Json) -> int:
    deepest, open_values = 0, [(value, 1)]
    while open_values:
        inner, level = open_values.pop()
        items = (
            inner.values()
            if isinstance(inner, dict)
            else inner
            if isinstance(inner, list)
            else None
        )
        if items is not None:
            deepest = max(deepest, level)
            open_values.extend((item, level + 1) for item in items)
    return deepest


def _refuse_surrogates(text: str, value: JsonObject) -> Refusal | None:
    """Refuse a lone surrogate, which UTF-8 cannot encode."""
    has_escapes = "\\ud" in text or "\\uD" in text
    try:
        (json.dumps(value, ensure_ascii=False) if has_escapes else text).encode("utf-8")
    except UnicodeEncodeError:
        return _MALFORMED
    return None
