"""The events of an episode, and the hash chain that makes a trace tamper-evident.

Two runs of a deterministic agent give equal events: events contain no times, process IDs or names
of the infrastructure. The recorder adds times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple, Protocol

from fumehood.core.conversation import TurnBegan, TurnEnded
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import Json, JsonObject, digest_json
from fumehood.core.ledger import Amounts, units_by_name
from fumehood.core.outcome import (
    CallRefused,
    ConfidenceStated,
    ModelProblem,
    SeatEnd,
    outcome_to_json,
)
from fumehood.core.received import Deliveries
from fumehood.core.tools import FiredFault, ToolCall, ToolResult, Value, arguments_after_faults
from fumehood.core.virtual_time import WorldEvent

Units = Annotated[JsonObject, dict[str, int]]
"""Numbers of units by name. As in all such types, the second part is the form in an event, which
:mod:`fumehood.core.event_forms` checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """Event: a model request is complete."""

    seat: str
    model: str
    """Name of the model in the request."""
    request: str
    """Hex SHA-256 of path and canonical request."""
    status: int
    """HTTP status code."""
    response: str
    """Hex SHA-256 of the part of the response body that the agent received."""
    finish_reason: str = ""
    """``stop``, ``length``, ``tool_calls``, ``content_filter``, ``context_overflow``,
    ``malformed_call`` or ``other``; empty if the response does not state it."""
    reported: Units = field(default_factory=dict)
    """Tokens as the provider reported them: ``input``, ``output``, ``cached``, ``reasoning``."""
    spent: Units = field(default_factory=dict)
    """Units that were charged, by name of the budget kind."""
    duration_ns: int = 0
    """From its admission to the end of the response. Part of the record, not of the event."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "model_call",
            "seat": self.seat,
            "model": self.model,
            "request": self.request,
            "status": self.status,
            "response": self.response,
            "finish_reason": self.finish_reason,
            "reported": self.reported,
            "spent": self.spent,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRefused:
    """Event: the agent got no answer to a model request, because the gateway refused it, because
    the seat ended before, or because the response was too large. Only in the last two cases may a
    provider have received it."""

    seat: str
    reason: str
    """Such as ``capability_not_granted``."""
    needs: JsonObject = field(default_factory=dict)
    """Capabilities and fields that the run does not grant → field of the request."""
    budget: JsonObject = field(default_factory=dict)
    """Of a request that the budget does not allow: ``kind``, and ``limit``, ``used`` and
    ``requested`` units."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "model_refused",
            "seat": self.seat,
            "reason": self.reason,
            "needs": self.needs,
            **({"budget": self.budget} if self.budget else {}),
        }


@dataclass(frozen=True, slots=True)
class ModelProblemNoted:
    """Event: something went wrong between an agent and its model."""

    seat: str
    problem: ModelProblem
    source: Annotated[str, Literal["gateway", "agent"]]
    """``gateway`` if the gateway read it from a response, ``agent`` if the agent reported it."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "model_problem",
            "seat": self.seat,
            "problem": self.problem.value,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class PermissionAnswered:
    """Event: the client of an agent answered its permission request."""

    seat: str
    title: str
    """What the agent asked for, in its words."""
    answer: str
    """One of :data:`PERMISSION_ANSWERS`."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "permission",
            "seat": self.seat,
            "title": self.title,
            "answer": self.answer,
        }


PERMISSION_ANSWERS = frozenset(
    {"allow_once", "allow_always", "reject_once", "reject_always", "cancelled"}
)
"""Answers of the Agent Client Protocol; ``cancelled`` chooses no option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChecked:
    """Event: the gateway checked a provider after a request of the agent failed."""

    seat: str
    provider: str
    model: str
    """Model of the gateway's request; empty if it asked for the list of models."""
    result: str
    """Such as ``answers 200``."""
    failed: bool
    """Whether the provider does not work, so that the episode ends as ``infra(models)``."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "provider_checked",
            "seat": self.seat,
            "provider": self.provider,
            "model": self.model,
            "result": self.result,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """One model request and its complete response, as a cassette stores them."""

    seat: str
    key: str
    """Hex SHA-256 of path and canonical request."""
    occurrence: int
    """Number of this request among equal requests of the seat, from 1."""
    request: bytes
    status: int
    content_type: str
    response: bytes


@dataclass(frozen=True, slots=True)
class EpisodeOpened:
    """Event: the world and the seats are ready."""

    spec: EpisodeSpec

    def to_json(self) -> JsonObject:
        """Return the event; the state appears as its digest."""
        spec = self.spec
        further: JsonObject = {}
        if spec.data_source is not None:
            further["data_mode"] = spec.data_source.data_mode.value
        if spec.conversation is not None:
            further["conversation"] = spec.conversation.rule
        if spec.policy:
            further["policy"] = spec.policy
        if spec.monitors:
            further["monitors"] = list(spec.monitors)
        return {
            **further,
            "kind": "opened",
            "world": spec.world,
            "harness_mode": spec.harness_mode,
            "seed": str(spec.seed),
            "state": digest_json(spec.initial_state),
            "fault_plan": [rule.to_json() for rule in spec.fault_plan],
            "seats": [seat.to_json() for seat in spec.seats],
        }


@dataclass(frozen=True, slots=True)
class CallMade:
    """Event: a valid call was answered."""

    seat: str
    call: ToolCall
    """The call that the agent sent."""
    result: ToolResult
    """The result that the agent received."""
    state_digest: str
    """Digest of the world's state after the call."""
    charged: Amounts = field(default_factory=dict)
    """Units that the call was charged, by kind, without zeros."""
    remaining: Amounts = field(default_factory=dict)
    """Units that the seat has left after the call, of the bounded kinds that calls are charged
    to."""
    at_ms: int | None = None
    """Virtual time of the result since the start, milliseconds; None if the world keeps no time."""
    observed: JsonObject | None = None
    """By path, the values of the state that the task's policy reads, when the world received the
    call; None without a policy."""
    changed: tuple[str, ...] = ()
    """Paths of canaries whose values the call changed."""
    had_effect: bool | None = None
    """Whether the world executed the call with success; None without a policy."""
    executed_at_ms: int | None = None
    """Virtual time at which the world had executed the call, milliseconds; None if it equals
    ``at_ms``, the world did not receive the call, or the task has no policy."""
    invalid_approval: str = ""
    """Name of the gate that refused the call because of its token, if the result hides that."""
    delivered: Deliveries | None = None
    """What the world executed during the call, in order; None if it was at most this call, once."""
    modified: Mapping[str, Json] | None = None
    """The arguments that a monitor sent on; None if none changed them."""

    def to_json(self) -> JsonObject:
        """Return the event. ``arguments_after`` is present if a fault or a monitor changed the
        arguments."""
        call, result = self.call, self.result
        event: JsonObject = {
            "kind": "call",
            "seat": self.seat,
            "number": call.number,
            "tool": call.tool_name,
            "arguments": dict(call.arguments),
            "state": self.state_digest,
            "faults": [_fired_json(fired) for fired in result.fired_faults],
            "charged": {**units_by_name(self.charged)},
            "remaining": {**units_by_name(self.remaining)},
        }
        if self.at_ms is not None:
            event["at_ms"] = self.at_ms
        if self.executed_at_ms is not None:
            event["executed_at_ms"] = self.executed_at_ms
        if self.delivered is not None:
            event["delivered"] = [delivery.to_json() for delivery in self.delivered]
        if self.observed:
            event["observed"] = self.observed
        if self.changed:
            event["changed"] = list(self.changed)
        arguments_after = arguments_after_faults(call, result.fired_faults)
        if arguments_after is call.arguments and self.modified is not None:
            arguments_after = self.modified
        if arguments_after is not call.arguments:
            event["arguments_after"] = dict(arguments_after)
        if isinstance(result, Value):
            event["output"] = result.output
        else:
            event["failure"] = {
                "kind": result.kind.value,
                "code": result.code,
                "message": result.message,
                "details": dict(result.details),
            }
            if result.is_executed and result.replaced is not None:
                event["executed"] = True
            if self.had_effect is not None:
                event["had_effect"] = self.had_effect
            if self.invalid_approval:
                event["invalid_approval"] = self.invalid_approval
        return event


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorDecided:
    """Event: a monitor decided about a step, or failed. It precedes the event of the step."""

    monitor: str
    """Name of the monitor."""
    seat: str
    step: Annotated[str, Literal["tool", "model"]]
    stage: Annotated[str, Literal["before", "after"]]
    number: int
    """Of the call or of the model request, from 1."""
    decision: JsonObject | None
    """Action, suspicion, reason, message, and what it replaces; None if the monitor failed."""
    failed: str = ""
    """Why the monitor failed, such as ``deadline``."""
    original: JsonObject | None = None
    """The result that the decision replaced or withheld: ``output`` or ``failure``."""
    spent: Units | None = None
    """What the monitor's own model requests cost, by name of the budget kind; None without one."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        decided: JsonObject = (
            {"failed": self.failed} if self.decision is None else {"decision": self.decision}
        )
        return {
            "kind": "monitor",
            "monitor": self.monitor,
            "seat": self.seat,
            "step": self.step,
            "stage": self.stage,
            "number": self.number,
            **decided,
            **({} if self.original is None else {"original": self.original}),
            **({"spent": self.spent} if self.spent else {}),
        }


@dataclass(frozen=True, slots=True)
class SeatEnded:
    """Event: no further call of this seat is executed."""

    seat: str
    end: SeatEnd

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "seat_ended", "seat": self.seat, "end": outcome_to_json(self.end)}


@dataclass(frozen=True, slots=True)
class EpisodeClosed:
    """Event: the episode is closed."""

    final_state: Mapping[str, Json]
    fire_counts: tuple[int, ...]
    """How often each planned fault fired, in the order of the plan. 0 means not reached."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "closed",
            "final_state": dict(self.final_state),
            "fire_counts": list(self.fire_counts),
        }


Event = (
    EpisodeOpened
    | CallMade
    | CallRefused
    | ConfidenceStated
    | ModelCalled
    | ModelRefused
    | ModelProblemNoted
    | PermissionAnswered
    | ProviderChecked
    | TurnBegan
    | TurnEnded
    | WorldEvent
    | MonitorDecided
    | SeatEnded
    | EpisodeClosed
)


class Recorder(Protocol):
    """Records events in the order in which they happen."""

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Record one event. Must not fail and must not block.

        Args:
            event: the values that it refers to are never changed afterwards.
            duration_ns: duration of the event, nanoseconds.
        """
        ...


def _fired_json(fired: FiredFault) -> JsonObject:
    event: JsonObject = {"rule": fired.rule, "family": fired.family}
    return event if fired.code_before is None else {**event, "code_before": fired.code_before}


_CONTROL = re.compile(r"[\x00-\x1f]")

GENESIS = "0" * 64
"""Previous hash of the first record."""


class Chain:
    """Computes the hashes of consecutive records."""

    def __init__(self) -> None:
        self._last = GENESIS
        self.length = 0

    def link(self, event_json: str) -> str:
        """Return the hash of the next record.

        Args:
            event_json: canonical JSON of the event.

        Returns:
            Hex SHA-256 of the previous hash followed by the event.
        """
        self._last = sha256((self._last + event_json).encode("ascii")).hexdigest()
        self.length += 1
        return self._last

    def follow(self, record: Record) -> bool:
        """Take over a record of another chain.

        Returns:
            False, without an effect, if the record does not continue this chain.
        """
        # Canonical JSON is ASCII on one line, so any other text was not written by the service.
        if not _is_one_line(record.event_json):
            return False
        last = sha256((self._last + record.event_json).encode("ascii")).hexdigest()
        if last != record.hash:
            return False
        self._last = last
        self.length += 1
        return True

    def end_record(self) -> str:
        """Return the event that ends the chain. It states the number of events before it."""
        # In canonical JSON. Each record of a trace is compared with it.
        return f'{{"events":{self.length},"kind":"sealed"}}'


class Record(NamedTuple):
    """One line of a trace."""

    event_json: str
    hash: str
    wall_ms: int
    """Milliseconds since the Unix epoch. Not covered by the hash."""
    duration_us: int
    """Duration of the event, microseconds. Not covered by the hash."""


class BrokenTrace(ValueError):
    """The trace was truncated, reordered or edited."""


class CutTrace(BrokenTrace):
    """The trace has no end record; the records before are valid."""


def event_of(text: str) -> JsonObject | None:
    """Return the event of a record; None if the text is no JSON object with a kind."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(event, dict) and isinstance(event.get("kind"), str)
    return event if is_event else None


def _is_one_line(text: str) -> bool:
    # Nearly all text is printable, which is tested in a fifth of the time.
    return text.isascii() and (text.isprintable() or _CONTROL.search(text) is None)


def verify_chain(records: Iterable[Record]) -> str:
    """Verify the hash chain of a trace.

    Returns:
        The hash of the last record, which is the digest of the trace.

    Raises:
        BrokenTrace: a hash is wrong, or the end record is missing or not last.
    """
    chain = Chain()
    sealed, last = False, GENESIS
    for number, record in enumerate(records):
        if sealed:
            raise BrokenTrace(f"record {number} comes after the end record")
        sealed = record.event_json == chain.end_record()
        if not chain.follow(record):
            raise BrokenTrace(f"the hash of record {number} does not match")
        last = record.hash
    if not sealed:
        raise CutTrace("the end record is missing: the trace was truncated")
    return last
