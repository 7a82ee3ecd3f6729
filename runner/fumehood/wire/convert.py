"""Converts between the types of the core and protobuf messages, in both directions.

Every ``x_from_pb`` returns what ``x_to_pb`` received.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fumehood.core.conversation import ConversationSpec, Turn
from fumehood.core.episode import Reply
from fumehood.core.episode_spec import (
    DataSource,
    EpisodeSpec,
    SeatSpec,
    TokensBeforeCall,
    data_source_from_json,
)
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import Json, JsonObject, ordered_json
from fumehood.core.ledger import Budget, units_by_name
from fumehood.core.outcome import Refusal, RefusalKind
from fumehood.core.tools import Value
from fumehood.core.trace import ModelExchange, Record
from fumehood.wire.ports import (
    EpisodeMessage,
    InlineAgent,
    Opened,
    PlayedInline,
    Records,
    SeatReady,
    SeatSockets,
    SeatWorkEnded,
    SpecRejected,
    TaskView,
    TimeGranted,
)
from fumehood_agent._proto.v1 import control_pb2, episode_pb2, tool_pb2, trace_pb2

INT64_MAX = 2**63 - 1

REFUSAL_KINDS = {
    kind: tool_pb2.RefusalKind.Value(f"REFUSAL_KIND_{kind.name}") for kind in RefusalKind
}


# Tasks, replies and submissions.


def task_to_pb(view: TaskView) -> tool_pb2.GetTaskResponse:
    """Convert the task of a seat."""
    tools = [
        tool_pb2.ToolSpec(
            name=tool.name,
            description=tool.description,
            parameters_json=ordered_json(tool.parameters),
        )
        for tool in view.tools
    ]
    return tool_pb2.GetTaskResponse(
        instruction=view.instruction,
        tools=tools,
        remaining=units_by_name(view.remaining),
        turn=view.turn,
        asks_confidence=view.asks_confidence,
    )


def reply_to_pb(reply: Reply | Refusal) -> tool_pb2.CallToolResponse:
    """Convert the reply to a call."""
    response = tool_pb2.CallToolResponse()
    write_reply(reply, response)
    return response


def write_reply(reply: Reply | Refusal, response: tool_pb2.CallToolResponse) -> None:
    """Write the reply to a call into an empty message.

    Setting the fields of a nested message takes a third of the time of copying a message into it.
    """
    if isinstance(reply, Refusal):
        response.refusal.CopyFrom(refusal_to_pb(reply))
        response.ended = reply.kind is RefusalKind.ENDED
        return
    result, recorded = reply.result, reply.recorded_arguments
    response.ended = reply.ended
    remaining = response.remaining
    for name, units in units_by_name(reply.remaining).items():
        remaining[name] = units
    if isinstance(result, Value):
        response.value_json = ordered_json(result.output)
    else:
        response.failure.code = result.code
        response.failure.message = result.message
        response.failure.details_json = ordered_json(dict(result.details))
    if recorded is not None:
        response.recorded_arguments_json = ordered_json(recorded)


def submission_to_pb(result: bool | TaskView | Refusal) -> tool_pb2.SubmitResponse:
    """Convert the result of ``SeatPort.submit``."""
    if isinstance(result, Refusal):
        return tool_pb2.SubmitResponse(refusal=refusal_to_pb(result))
    if isinstance(result, TaskView):
        return tool_pb2.SubmitResponse(accepted=True, next=task_to_pb(result))
    return tool_pb2.SubmitResponse(accepted=result)


def refusal_to_pb(refusal: Refusal) -> tool_pb2.Refusal:
    """Convert a refusal of the service."""
    return tool_pb2.Refusal(
        kind=REFUSAL_KINDS[refusal.kind], limit=refusal.limit, actual=refusal.actual
    )


# Specifications of episodes.


def spec_to_pb(spec: EpisodeSpec) -> episode_pb2.EpisodeSpec:
    """Convert the specification of an episode.

    Raises:
        SpecError: a text or a number cannot be sent.
    """
    plan: list[Json] = [rule.to_json() for rule in spec.fault_plan]
    source = spec.data_source
    return episode_pb2.EpisodeSpec(
        episode_id=wire_text("episode_id", spec.episode_id),
        world=wire_text("world", spec.world),
        harness_mode=wire_text("harness_mode", spec.harness_mode),
        initial_state_json=ordered_json(spec.initial_state),
        fault_plan_json=ordered_json(plan),
        seed=_decimal("seed", spec.seed),
        seats=[_seat_to_pb(seat) for seat in spec.seats],
        data_source_json="" if source is None else ordered_json(source.to_json()),
        conversation=_conversation_to_pb(spec.conversation),
        policy_json=ordered_json(spec.policy) if spec.policy else "",
        monitors=[wire_text("monitors", name) for name in spec.monitors],
        recorded_decisions_json=(
            "" if spec.recorded_decisions is None else ordered_json(spec.recorded_decisions)
        ),
        recorded_tokens_json=(
            ordered_json([[*entry] for entry in spec.recorded_tokens])
            if spec.recorded_tokens
            else ""
        ),
    )


def spec_from_pb(spec: episode_pb2.EpisodeSpec) -> EpisodeSpec:
    """Convert the message that :func:`spec_to_pb` returned.

    Raises:
        SpecError: a field is malformed.
    """
    state = _loads("initial_state", spec.initial_state_json)
    if not isinstance(state, dict):
        raise SpecError("initial_state", "must be a JSON object")
    return EpisodeSpec(
        episode_id=spec.episode_id,
        world=spec.world,
        harness_mode=spec.harness_mode,
        initial_state=state,
        fault_plan=_plan_from_json(_loads("fault_plan", spec.fault_plan_json)),
        seed=_integer("seed", spec.seed),
        seats=tuple(map(_seat_from_pb, spec.seats)),
        data_source=_data_source_from_json(spec.data_source_json),
        conversation=_conversation_from_pb(spec),
        policy=_policy_from_json(spec.policy_json),
        monitors=tuple(spec.monitors),
        recorded_decisions=_recorded_decisions(spec.recorded_decisions_json),
        recorded_tokens=tuple(_recorded_tokens(spec.recorded_tokens_json)),
    )


def _recorded_decisions(text: str) -> tuple[JsonObject, ...] | None:
    if not text:
        return None
    events = _loads("recorded_decisions", text)
    if not isinstance(events, list):
        raise SpecError("recorded_decisions", "must be a JSON list")
    return tuple(event for event in events if isinstance(event, dict))


def _recorded_tokens(text: str) -> Iterator[TokensBeforeCall]:
    entries = _loads("recorded_tokens", text) if text else []
    for entry in entries if isinstance(entries, list) else [entries]:
        match entry:
            case [str(seat), int(number), int(tokens)]:
                yield seat, number, tokens
            case _:
                raise SpecError("recorded_tokens", "must be lists of seat, number and tokens")


def wire_text(field: str, text: str) -> str:
    """Return the text if it can be sent.

    Raises:
        SpecError: it contains a lone surrogate, which UTF-8 cannot encode.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SpecError(field, "contains a lone surrogate, which UTF-8 cannot encode") from None
    return text


def _seat_to_pb(seat: SeatSpec) -> episode_pb2.SeatSpec:
    return episode_pb2.SeatSpec(
        name=wire_text("seats.name", seat.name),
        instruction=wire_text("instruction", seat.instruction),
        budget=_budget_to_pb(seat.budget),
        further_turns=[
            episode_pb2.Turn(
                instruction=wire_text("further_turns.instruction", turn.instruction),
                tools=_names("further_turns.tools", turn.tools),
            )
            for turn in seat.further_turns
        ],
        tools=None
        if seat.tools is None
        else episode_pb2.ToolNames(names=_names("seats.tools", seat.tools)),
        asks_confidence=seat.asks_confidence,
        prompt_variant=seat.prompt_variant,
    )


def _seat_from_pb(seat: episode_pb2.SeatSpec) -> SeatSpec:
    return SeatSpec(
        name=seat.name,
        instruction=seat.instruction,
        budget=_budget_from_pb(seat.budget),
        further_turns=tuple(
            Turn(turn.instruction, tuple(turn.tools)) for turn in seat.further_turns
        ),
        tools=tuple(seat.tools.names) if seat.HasField("tools") else None,
        asks_confidence=seat.asks_confidence,
        prompt_variant=seat.prompt_variant,
    )


def _names(field: str, names: Iterable[str]) -> list[str]:
    return [wire_text(field, name) for name in names]


def _budget_to_pb(budget: Budget) -> dict[str, int]:
    limits = budget.to_json()
    for name, limit in limits.items():
        if not 0 <= limit <= INT64_MAX:
            raise SpecError(f"budget.{name}", f"must be from 0 to {INT64_MAX}, is {limit}")
    return limits


def _budget_from_pb(limits: Mapping[str, int]) -> Budget:
    try:
        return Budget(**limits)
    except ValueError as error:
        raise SpecError("seats.budget", str(error)) from None


def _conversation_to_pb(spec: ConversationSpec | None) -> episode_pb2.Conversation | None:
    if spec is None:
        return None
    rule = wire_text("conversation.rule", spec.rule)
    return episode_pb2.Conversation(rule=rule, settings_json=ordered_json(spec.settings))


def _conversation_from_pb(spec: episode_pb2.EpisodeSpec) -> ConversationSpec | None:
    if not spec.HasField("conversation"):
        return None
    settings = _loads("conversation.settings", spec.conversation.settings_json)
    if not isinstance(settings, dict):
        raise SpecError("conversation.settings", "must be a JSON object")
    return ConversationSpec(spec.conversation.rule, settings)


def _data_source_from_json(text: str) -> DataSource | None:
    return data_source_from_json(_loads("data_source", text)) if text else None


def _policy_from_json(text: str) -> JsonObject:
    policy = _loads("policy", text) if text else {}
    if not isinstance(policy, dict):
        raise SpecError("policy", "must be a JSON object")
    return policy


def _plan_from_json(plan: Json) -> tuple[FaultRule, ...]:
    if not isinstance(plan, list):
        raise SpecError("fault_plan", "must be a JSON list")
    return tuple(_rule_from_json(index, rule) for index, rule in enumerate(plan))


def _rule_from_json(index: int, rule: Json) -> FaultRule:
    match rule:
        case {
            "family": str(family),
            "trigger": dict(trigger),
            "severity": str(severity),
            "payload": dict(payload),
        }:
            return FaultRule(index, family, trigger, severity, payload)
    raise SpecError(f"fault_plan[{index}]", "must have family, trigger, severity and payload")


def _decimal(field: str, number: int) -> str:
    try:
        return str(number)
    except ValueError as error:
        raise SpecError(field, f"has too many digits: {error}") from None


def _integer(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SpecError(field, "must be a decimal number") from None


def _loads(field: str, text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(field, f"is not readable JSON: {error}") from None
    return value


# Messages of an open episode.


def message_to_pb(message: EpisodeMessage) -> control_pb2.OpenEpisodeResponse:
    """Convert one message of an episode's stream."""
    response = control_pb2.OpenEpisodeResponse()
    match message:
        case Opened(seats):
            response.opened.SetInParent()
            for seat in seats:
                response.opened.seats.add(name=seat.name, directory=seat.directory)
        case Records(records):
            response.records.SetInParent()
            response.records.records.extend(map(record_to_pb, records))
        case SeatReady(name):
            response.seat_ready.CopyFrom(control_pb2.SeatReady(name=name))
        case SeatWorkEnded(name):
            response.seat_work_ended.CopyFrom(control_pb2.SeatWorkEnded(name=name))
        case TimeGranted(name, granted_ms):
            response.time_granted.CopyFrom(
                control_pb2.TimeGranted(name=name, granted_ms=granted_ms)
            )
        case SpecRejected():
            response.spec_rejected.CopyFrom(_rejection_to_pb(message))
        case ModelExchange():
            response.exchange.CopyFrom(exchange_to_pb(message))
    return response


def message_from_pb(message: control_pb2.OpenEpisodeResponse) -> EpisodeMessage:
    """Convert the message that :func:`message_to_pb` returned.

    Raises:
        ValueError: the message is empty.
    """
    field = message.WhichOneof("message")
    if field is None:
        raise ValueError("the service sent an empty message")
    return _FROM_PB[field](getattr(message, field))


def _opened_from_pb(message: control_pb2.Opened) -> Opened:
    return Opened(tuple(SeatSockets(seat.name, seat.directory) for seat in message.seats))


def _records_from_pb(message: control_pb2.Records) -> Records:
    return Records(tuple(map(record_from_pb, message.records)))


def _rejection_to_pb(rejection: SpecRejected) -> control_pb2.SpecRejected:
    return control_pb2.SpecRejected(field=rejection.field, message=rejection.reason)


def _rejection_from_pb(message: control_pb2.SpecRejected) -> SpecRejected:
    return SpecRejected(message.field, message.message)


def exchange_to_pb(exchange: ModelExchange) -> control_pb2.ModelExchange:
    """Convert a model request with its response."""
    return control_pb2.ModelExchange(
        seat=exchange.seat,
        key=exchange.key,
        occurrence=exchange.occurrence,
        request=exchange.request,
        status=exchange.status,
        content_type=exchange.content_type,
        response=exchange.response,
    )


def exchange_from_pb(message: control_pb2.ModelExchange) -> ModelExchange:
    """Convert the message that :func:`exchange_to_pb` returned."""
    return ModelExchange(
        seat=message.seat,
        key=message.key,
        occurrence=message.occurrence,
        request=message.request,
        status=message.status,
        content_type=message.content_type,
        response=message.response,
    )


def record_to_pb(record: Record) -> trace_pb2.TraceRecord:
    """Convert one line of a trace."""
    return trace_pb2.TraceRecord(
        event_json=record.event_json,
        hash=record.hash,
        wall_ms=record.wall_ms,
        duration_us=record.duration_us,
    )


def record_from_pb(record: trace_pb2.TraceRecord) -> Record:
    """Convert the message that :func:`record_to_pb` returned."""
    return Record(record.event_json, record.hash, record.wall_ms, record.duration_us)


_FROM_PB: Mapping[str, Callable[[Any], EpisodeMessage]] = {
    "opened": _opened_from_pb,
    "records": _records_from_pb,
    "seat_ready": lambda message: SeatReady(message.name),
    "seat_work_ended": lambda message: SeatWorkEnded(message.name),
    "time_granted": lambda message: TimeGranted(message.name, message.granted_ms),
    "spec_rejected": _rejection_from_pb,
    "exchange": exchange_from_pb,
}
"""Name of the field that a message sets → its conversion."""


# Episodes that are played inside the service.


def played_to_pb(played: PlayedInline) -> control_pb2.PlayInlineResponse:
    """Convert the result of an inline episode."""
    message = control_pb2.PlayInlineResponse(
        agent_error=played.agent_error,
        exit_status=played.exit_status,
        failed_seat=played.failed_seat,
    )
    if played.rejected is not None:
        message.spec_rejected.CopyFrom(_rejection_to_pb(played.rejected))
    else:
        message.records.records.extend(map(record_to_pb, played.records))
    return message


def played_from_pb(message: control_pb2.PlayInlineResponse) -> PlayedInline:
    """Convert the message that :func:`played_to_pb` returned."""
    is_rejected = message.HasField("spec_rejected")
    rejected = _rejection_from_pb(message.spec_rejected) if is_rejected else None
    records = tuple(map(record_from_pb, message.records.records))
    return PlayedInline(
        records, rejected, message.agent_error, message.exit_status, message.failed_seat
    )


def inline_agent_to_pb(agent: InlineAgent) -> control_pb2.InlineAgent:
    """Convert an agent that plays inline."""
    return control_pb2.InlineAgent(seat=agent.seat, name=agent.name, moves_json=agent.moves_json)


def inline_agent_from_pb(message: control_pb2.InlineAgent) -> InlineAgent:
    """Convert the message that :func:`inline_agent_to_pb` returned."""
    return InlineAgent(message.seat, message.name, message.moves_json)
