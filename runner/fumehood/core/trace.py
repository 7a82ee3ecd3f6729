"""What happens in an episode, one type an event.

Nothing here may differ between two runs of a deterministic agent: no times, no process numbers, no names of
the machinery. Whoever writes events down stamps them with times of his own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from fumehood.core.conversation import TurnBegan, TurnEnded
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import Json, JsonObject, canonical_json, digest_json
from fumehood.core.ledger import Amounts, units_by_name
from fumehood.core.outcome import CallRefused, SeatEnd, outcome_to_json
from fumehood.core.tools import FiredFault, ToolCall, ToolResult, Value, arguments_after_faults


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """A model was asked and its answer is over: an event of the trace."""

    seat: str
    model: str
    """As the request names it."""
    request: str
    """Hex SHA-256 of path and canonical request."""
    status: int
    """Of HTTP."""
    response: str
    """Hex SHA-256 of the answer's body, as far as the agent got it."""
    spent: JsonObject = field(default_factory=dict)
    """Units that were charged, by name of the budget kind."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "model_call",
            "seat": self.seat,
            "model": self.model,
            "request": self.request,
            "status": self.status,
            "response": self.response,
            "spent": self.spent,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """One request and its answer, whole, as a cassette keeps them."""

    seat: str
    key: str
    """Hex SHA-256 of path and canonical request."""
    occurrence: int
    """How often this seat has asked just this, from 1."""
    request: bytes
    status: int
    content_type: str
    response: bytes


@dataclass(frozen=True, slots=True)
class EpisodeOpened:
    """The world stands, the seats are ready."""

    spec: EpisodeSpec

    def to_json(self) -> JsonObject:
        """Return the event; the state appears as its digest."""
        spec = self.spec
        further: JsonObject = {}
        if spec.data_source is not None:
            further["data_mode"] = spec.data_source.data_mode.value
        if spec.conversation is not None:
            further["conversation"] = spec.conversation.rule
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
    """A call passed the wall and was answered."""

    seat: str
    call: ToolCall
    """As the agent sent it."""
    result: ToolResult
    """As the agent got it."""
    state_digest: str
    """Of the world after the call."""
    charged: Amounts = field(default_factory=dict)
    """Units that the call was charged, without kinds of which it took none."""
    remaining: Amounts = field(default_factory=dict)
    """Units that the seat has left after the call, of the bounded kinds that calls are charged to."""

    def to_json(self) -> JsonObject:
        """Return the event; ``arguments_after`` is there when a fault altered the arguments."""
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
        arguments_after = arguments_after_faults(call, result.fired_faults)
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
        return event


@dataclass(frozen=True, slots=True)
class SeatEnded:
    """No further call of this seat will be carried out."""

    seat: str
    end: SeatEnd

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {"kind": "seat_ended", "seat": self.seat, "end": outcome_to_json(self.end)}


@dataclass(frozen=True, slots=True)
class EpisodeClosed:
    """The world is gone; this is how it stood, and which planned faults it met."""

    final_state: Mapping[str, Json]
    fire_counts: tuple[int, ...]
    """How often each planned fault was arguments_after, in the order of the plan; 0 means not reached."""

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
    | ModelCalled
    | TurnBegan
    | TurnEnded
    | SeatEnded
    | EpisodeClosed
)


class Recorder(Protocol):
    """Takes events down in the order in which they happen."""

    def record(self, event: Event, duration_ns: int = 0) -> None:
        """Take one event down; must not fail and must not wait.

        Args:
            event: what happened; whatever it refers to will not change any more.
            duration_ns: how long it took, nanoseconds.
        """
        ...


def _fired_json(fired: FiredFault) -> JsonObject:
    event: JsonObject = {"rule": fired.rule, "family": fired.family}
    return event if fired.code_before is None else {**event, "code_before": fired.code_before}


_CONTROL = re.compile(r"[\x00-\x1f]")

GENESIS = "0" * 64
"""What stands where the first record's predecessor would."""


class Chain:
    """Links records in order."""

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

    def seal(self) -> str:
        """Return the event that closes the chain: it states how many came before it."""
        return canonical_json({"kind": "sealed", "events": self.length})


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a trace."""

    event_json: str
    hash: str
    wall_ms: int
    """When, milliseconds since the Unix epoch. Not covered by the hash."""
    duration_us: int
    """How long, microseconds. Not covered by the hash."""


class BrokenTrace(ValueError):
    """A trace that was cut, reordered or edited."""


class CutTrace(BrokenTrace):
    """A trace that lacks its end and is sound up to there."""


def _is_one_line(text: str) -> bool:
    return text.isascii() and _CONTROL.search(text) is None


def verify_chain(records: Iterable[Record]) -> str:
    """Check a whole trace.

    Returns:
        The hash of the seal: one digest for all that the trace says.

    Raises:
        BrokenTrace: a hash does not follow from what came before, or the seal is missing or not last.
    """
    chain = Chain()
    sealed, last = False, GENESIS
    for number, record in enumerate(records):
        if sealed:
            raise BrokenTrace(f"record {number} stands after the seal")
        sealed = record.event_json == chain.seal()
        # Canonical text is ASCII on one line, so whatever is not was put there by somebody else.
        if not _is_one_line(record.event_json) or chain.link(record.event_json) != record.hash:
            raise BrokenTrace(f"record {number} does not follow from the one before it")
        last = record.hash
    if not sealed:
        raise CutTrace("the seal is missing: the trace was cut off")
    return last
