"""Seats and episodes: one attempt at one task, as the service hosts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from fumehood.core.conversation import Conversation, TurnBegan, TurnEnded, TurnQueue
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import (
    Amounts,
    BudgetKind,
    Exhausted,
    Ledger,
    Reservation,
    units_by_name,
)
from fumehood.core.outcome import AgentCrashed, Finished, OutOfBudget, SeatEnd
from fumehood.core.tools import ToolCall, ToolResult, Toolset, ToolSpec, World
from fumehood.core.trace import (
    CallMade,
    EpisodeClosed,
    EpisodeOpened,
    Event,
    ModelCalled,
    ModelRefused,
    PermissionAnswered,
    Recorder,
    SeatEnded,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a call."""

    result: ToolResult
    remaining: dict[BudgetKind, int]
    """Units left of each bounded kind after the call."""
    ended: bool
    """Whether the work of this seat has ended, so that no further call is executed."""
    recorded_arguments: JsonObject | None = None
    """The arguments in the agent's transcript; None if the transcript shows the arguments it
    sent."""


ArgumentsToRecord = Callable[[ToolCall, ToolResult], JsonObject | None]
"""Returns ``Reply.recorded_arguments`` of a call."""


class SeatWatch(Protocol):
    """The monitors of an episode, as a seat uses them."""

    def ask_about_model(
        self, seat: str, model: str, request: JsonObject, answered: tuple[int, JsonObject] | None
    ) -> tuple[int, JsonObject]:
        """Return the number of a model request, and the decision about it; see ``Seat.review``."""

    def finish_seats(self) -> None:
        """End the work of all seats, if a monitor decided so or failed."""


class Seat:
    """One participant of an episode: its tools, budget and end. Not thread-safe."""

    def __init__(
        self,
        name: str,
        turns: TurnQueue,
        tools: Toolset,
        ledger: Ledger,
        recorder: Recorder,
        conversation: Conversation | None = None,
        arguments_to_record: ArgumentsToRecord = lambda call, result: None,
        on_tokens: Callable[[int], None] | None = None,
        watch: SeatWatch | None = None,
    ) -> None:
        """Create the seat and let it join the conversation, if the episode has one.

        Args:
            name: unique within the episode.
            turns: the messages to this seat.
            tools: the toolset behind the layers.
            ledger: counts what the seat spends.
            recorder: receives the events of the trace.
            conversation: decides which seat has the turn; None if every seat works by itself.
            arguments_to_record: selects the arguments that the agent's transcript shows.
            on_tokens: called with the tokens of each model request; None for nothing.
            watch: the monitors of the episode; None for no monitors.
        """
        self.name = name
        self.ledger = ledger
        self.end: SeatEnd | None = None
        """How the work ended; None while it goes on."""
        self._conversation = conversation
        self._turns = turns
        self._tools = tools
        self._recorder = recorder
        self._arguments_to_record = arguments_to_record
        self._on_tokens = on_tokens
        self._watch = watch
        if conversation is not None:
            conversation.join(self)

    @property
    def has_turn(self) -> bool:
        """Whether this seat has the turn."""
        return self._conversation is None or self._conversation.turn_holder == self.name

    @property
    def can_act(self) -> bool:
        """Whether this seat has the turn and no call of it takes virtual time."""
        return self._conversation is None or self._conversation.can_act(self.name)

    @property
    def instruction(self) -> str:
        """The latest message to the seat."""
        return self._turns.instruction

    @property
    def turn(self) -> int:
        """Number of the current turn, from 1."""
        return self._turns.number

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of the current turn, in the order of the world."""
        hidden = self._turns.hidden
        tools = self._tools.list_tools()
        return tuple(tool for tool in tools if tool.name not in hidden) if hidden else tools

    def call(self, tool_name: str, arguments: Mapping[str, Json]) -> Reply:
        """Execute one call. The work of the seat must not have ended.

        Raises:
            SpecError: the world cannot continue with the state that the task gave it.
        """
        call = ToolCall(tool_name, arguments)
        result = self._tools.call(call)
        if self._watch is not None:
            self._watch.finish_seats()
        exhausted = self.ledger.exhausted
        if exhausted is not None:
            self.finish(OutOfBudget(exhausted))
        recorded = self._arguments_to_record(call, result)
        return Reply(result, self.ledger.remaining(), self.end is not None, recorded)

    @property
    def is_monitored(self) -> bool:
        """Whether the episode has monitors."""
        return self._watch is not None

    def review(
        self, model: str, request: JsonObject, answered: tuple[int, JsonObject] | None = None
    ) -> tuple[int, JsonObject]:
        """Ask the monitors about a model request, before it is sent or after its response.

        Args:
            model: name of the model.
            request: body of the request.
            answered: number of the request, and body of the response; None before it is sent.

        Returns:
            The number of the request, and the decision: ``action`` (allow, modify, refuse or end),
            ``message``, and ``arguments`` or ``output`` if it modifies.

        Raises:
            InfraError: a monitor failed, and failed its health check too.
        """
        assert self._watch is not None
        reviewed = self._watch.ask_about_model(self.name, model, request, answered)
        self._watch.finish_seats()
        return reviewed

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted:
        """Reserve the units that a model request may cost; a rejected reservation ends the work."""
        reservation = self.ledger.reserve(amounts)
        if isinstance(reservation, Exhausted):
            budget: JsonObject = {
                "kind": reservation.kind.value,
                "limit": reservation.limit,
                "used": reservation.spent,
                "requested": amounts[reservation.kind],
            }
            self._recorder.record(
                ModelRefused(seat=self.name, reason="out_of_budget", budget=budget)
            )
            self.finish(OutOfBudget(reservation.kind))
        return reservation

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Charge what a model request cost, and record it.

        Args:
            reservation: from :meth:`reserve`, not settled before.
            event: the request, without its charge.
            actual: units as the provider reported them, even beyond the reservation and the budget.
        """
        self.ledger.settle(reservation, actual)
        spent: JsonObject = {**units_by_name(actual)}
        self._recorder.record(replace(event, spent=spent), event.duration_ns)
        if self._on_tokens is not None:
            self._on_tokens(actual.get(BudgetKind.MODEL_TOKENS, 0))

    def record_permission(self, title: str, answer: str) -> None:
        """Record the answer to a permission request of the agent."""
        self._recorder.record(PermissionAnswered(self.name, title, answer))

    def receive(self, text: str) -> None:
        """Begin a turn with a message of another seat or of the turn policy."""
        self._turns.receive(text)
        self._recorder.record(TurnBegan(self.name, self._turns.number, text))

    def answer(self, text: str) -> bool:
        """Submit an answer: end the turn, or the work after the last turn.

        Returns:
            Whether the answer was accepted; after the end of the work it is not.
        """
        if self.end is not None:
            return self.finish(Finished(text))
        if self._conversation is not None:
            self._end_turn(self._conversation, text)
        elif self._turns.is_last:
            self.finish(Finished(text))
        else:
            self._recorder.record(TurnEnded(self.name, self._turns.number, text))
            self._turns.advance()
        return True

    def finish(self, end: SeatEnd, *, ends_all: bool = False) -> bool:
        """End the seat's work.

        Args:
            end: how the work ended.
            ends_all: whether this also ends the work of the other seats.

        Returns:
            Whether the work ended now; False if it had ended before.
        """
        if self.end is not None:
            return False
        self.end = end
        self._recorder.record(SeatEnded(self.name, end))
        if self._conversation is not None:
            self._conversation.leave(self.name, ends_all=ends_all)
        return True

    def _end_turn(self, conversation: Conversation, text: str) -> None:
        handover = conversation.next_after(self.name, text)
        if handover is None:
            self.finish(Finished(text), ends_all=conversation.answers_end_all)
        else:
            self._recorder.record(TurnEnded(self.name, self._turns.number, text))
            conversation.pass_turn(handover)


class FireCounts:
    """A recorder that counts how often each fault rule fired, and forwards all events."""

    def __init__(self, recorder: Recorder, rules: int) -> None:
        self._recorder = recorder
        self.fire_counts = [0] * rules

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Count the fired faults of a call, then forward the event."""
        if isinstance(event, CallMade):
            for fired in event.result.fired_faults:
                self.fire_counts[fired.rule] += 1
        self._recorder.record(event, duration_ns)


class Episode:
    """An open episode: its world, seats and conversation."""

    def __init__(
        self,
        spec: EpisodeSpec,
        world: World,
        seats: tuple[Seat, ...],
        recorder: FireCounts,
        conversation: Conversation | None = None,
        before_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Record the start of the episode and begin its conversation, if it has one.

        Args:
            spec: the specification.
            world: shared by all seats.
            seats: in the order of the specification.
            recorder: receives the events of the trace.
            conversation: of the seats; None if every seat works by itself.
            before_close: called before the final state is recorded.
        """
        self.spec = spec
        self.world = world
        self.seats = seats
        self.conversation = conversation
        self._recorder = recorder
        self._before_close = before_close
        recorder.record(EpisodeOpened(spec))
        if conversation is not None:
            conversation.begin()

    @property
    def ended(self) -> bool:
        """Whether the work of every seat has ended."""
        return all(seat.end is not None for seat in self.seats)

    def close(self) -> None:
        """Record the final state and how often each fault fired. Call once, at the end."""
        if self.conversation is not None:
            self.conversation.stop()
        # The state is not copied, because no tool is called afterwards. A call that crashed a seat
        # may have left a state that cannot be written.
        crashed = any(isinstance(seat.end, AgentCrashed) for seat in self.seats)
        if not crashed:
            self._before_close()
        state = {} if crashed else self.world.state
        self._recorder.record(EpisodeClosed(state, tuple(self._recorder.fire_counts)))
