"""What happens in an episode, one type an event.

Nothing here may differ between two runs of a deterministic agent: no times, no process numbers, no names of
the machinery. Whoever writes events down stamps them with times of his own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fumehood.core.conversation import TurnBegan
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.json_values import Json, JsonObject, digest_json
from fumehood.core.model_calls import ModelCalled
from fumehood.core.outcome import SeatEnd, outcome_to_json
from fumehood.core.refusal import CallRefused
from fumehood.core.tools import FiredFault, ToolCall, ToolResult, Value, delivered_arguments
from fumehood.core.turns import TurnEnded


@dataclass(frozen=True, slots=True)
class EpisodeOpened:
    """The world stands, the seats are ready."""

    spec: EpisodeSpec

    def to_json(self) -> JsonObject:
        """Return the event; the state appears as its digest."""
        spec = self.spec
        further: JsonObject = {}
        if spec.data_source is not None:
            further["environment"] = spec.data_source.environment.value
        if spec.conversation is not None:
            further["conversation"] = spec.conversation.rule
        return {
            **further,
            "kind": "opened",
            "world": spec.world,
            "profile": spec.profile,
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

    def to_json(self) -> JsonObject:
        """Return the event; ``delivered`` is there when a fault altered the arguments."""
        call, result = self.call, self.result
        event: JsonObject = {
            "kind": "call",
            "seat": self.seat,
            "number": call.number,
            "tool": call.tool_name,
            "arguments": dict(call.arguments),
            "state": self.state_digest,
            "faults": [_strike_json(strike) for strike in result.story],
        }
        delivered = delivered_arguments(call, result.story)
        if delivered is not call.arguments:
            event["delivered"] = dict(delivered)
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
    deliveries: tuple[int, ...]
    """How often each planned fault was delivered, in the order of the plan; 0 means not reached."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "closed",
            "final_state": dict(self.final_state),
            "deliveries": list(self.deliveries),
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


def _strike_json(strike: FiredFault) -> JsonObject:
    event: JsonObject = {"rule": strike.rule, "family": strike.family}
    return event if strike.code_before is None else {**event, "code_before": strike.code_before}
