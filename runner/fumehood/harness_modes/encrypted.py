"""The harness mode of questions that must not be stored: native, with encrypted recording.

The initial state contains the encrypted question and the canary. This mode puts the plain question
into the instruction, in the memory of the service, and encrypts texts of the agent before they are
recorded: arguments, unknown names, answers and reasons. Tool results are recorded as they are; they
come from the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fumehood.core.clock import Clock
from fumehood.core.conversation import TurnBegan, TurnEnded
from fumehood.core.encryption import decrypt, encrypt_texts
from fumehood.core.episode import Episode
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.outcome import Finished, GaveUp, SeatEnd
from fumehood.core.received import Deliveries
from fumehood.core.tools import Failure, FiredFault, ToolCall, ToolResult
from fumehood.core.trace import (
    CallMade,
    Event,
    MonitorDecided,
    PermissionAnswered,
    Recorder,
    SeatEnded,
)
from fumehood.harness_modes.native import Native
from fumehood.monitors.review import Reviewer
from fumehood.worlds.registry import WORLDS

PLACEHOLDER = "{question}"
"""Replaced by the question in an instruction."""


class EncryptedQuestions:
    """Encrypts what the trace records of a question.

    Initial state: ``question`` (encrypted), ``canary``, and the keys of the world. Without a
    question the mode equals native.
    """

    def open_episode(
        self,
        spec: EpisodeSpec,
        recorder: Recorder,
        clock: Clock,
        reviewer: Reviewer | None = None,
    ) -> Episode:
        """Build the world and one seat per participant, with the question in every instruction.

        Raises:
            SpecError: the question was encrypted with another canary.
        """
        if "question" not in spec.initial_state:
            return Native().open_episode(spec, recorder, clock, reviewer)
        canary = _text(spec, "canary")
        try:
            question = decrypt(_text(spec, "question"), canary)
        except ValueError:
            raise SpecError(
                "initial_state.question", "was not encrypted with initial_state.canary"
            ) from None
        seats = tuple(
            replace(seat, instruction=seat.instruction.replace(PLACEHOLDER, question))
            for seat in spec.seats
        )
        encrypting = _EncryptingRecorder(recorder, canary, _public_names(spec.world))
        return Native().open_episode(replace(spec, seats=seats), encrypting, clock, reviewer)


class _EncryptingRecorder:
    def __init__(self, recorder: Recorder, canary: str, public: frozenset[str]) -> None:
        self._recorder = recorder
        self._canary = canary
        self._public = public

    def record(self, event: Event, duration_ns: int = 0) -> None:
        match event:
            case CallMade(call=call, result=result, modified=modified, delivered=delivered):
                event = replace(
                    event,
                    call=self._call(call),
                    result=self._result(result),
                    modified=None if modified is None else self._values(modified),
                    delivered=None if delivered is None else self._delivered(delivered),
                )
            case SeatEnded(seat, end):
                event = SeatEnded(seat, self._end(end))
            case MonitorDecided(decision=decision, original=original):
                event = replace(
                    event,
                    decision=None if decision is None else self._decision(decision),
                    original=None if original is None else self._values(original),
                )
            case TurnBegan(text=text):
                event = replace(event, text=self._text(text))
            case PermissionAnswered(title=title):
                event = replace(event, title=self._text(title))
            case TurnEnded(answer=answer):
                event = replace(event, answer=self._text(answer))
            case _:
                pass
        self._recorder.record(event, duration_ns)

    def _call(self, call: ToolCall) -> ToolCall:
        return replace(
            call, tool_name=self._name(call.tool_name), arguments=self._values(call.arguments)
        )

    def _delivered(self, deliveries: Deliveries) -> Deliveries:
        return tuple(
            replace(delivery, arguments=self._values(delivery.arguments)) for delivery in deliveries
        )

    def _result(self, result: ToolResult) -> ToolResult:
        fired_faults = tuple(self._fired(fired) for fired in result.fired_faults)
        if isinstance(result, Failure):
            message = self._text(result.message)
            return replace(
                result,
                message=message,
                details=self._values(result.details),
                fired_faults=fired_faults,
            )
        return replace(result, fired_faults=fired_faults)

    def _decision(self, decision: JsonObject) -> JsonObject:
        plain = {name: decision[name] for name in ("action", "suspicion")}
        return {**self._values(decision), **plain}

    def _fired(self, fired: FiredFault) -> FiredFault:
        if fired.arguments_after is None:
            return fired
        return replace(fired, arguments_after=self._values(fired.arguments_after))

    def _end(self, end: SeatEnd) -> SeatEnd:
        match end:
            case Finished(answer):
                return Finished(self._text(answer))
            case GaveUp(reason):
                return GaveUp(self._text(reason))
        return end

    def _name(self, name: str) -> str:
        # An agent can send any tool name and argument name, and unknown ones are recorded too.
        return name if name in self._public else self._text(name)

    def _text(self, text: str) -> str:
        return str(encrypt_texts(text, self._canary))

    def _values(self, values: Mapping[str, Json]) -> JsonObject:
        return {
            self._name(key): encrypt_texts(_without_keys(value), self._canary)
            for key, value in values.items()
        }


def _without_keys(value: Json) -> Json:
    """Return the value with objects as lists of pairs, so that keys are encrypted too."""
    if isinstance(value, dict):
        return [[key, _without_keys(item)] for key, item in value.items()]
    return [_without_keys(item) for item in value] if isinstance(value, list) else value


def _public_names(world: str) -> frozenset[str]:
    """Return the names of the tools of a world and of their arguments."""
    tools = WORLDS.load(world)({}).list_tools()
    arguments = [tool.parameters.get("properties") for tool in tools]
    argument_names = [name for schema in arguments if isinstance(schema, dict) for name in schema]
    return frozenset((*(tool.name for tool in tools), *argument_names))


def _text(spec: EpisodeSpec, name: str) -> str:
    value = spec.initial_state.get(name)
    if not isinstance(value, str):
        raise SpecError(f"initial_state.{name}", "must be text")
    return value
