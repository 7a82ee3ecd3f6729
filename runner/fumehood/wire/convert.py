"""Between the core's words and the wire's, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fumehood.core.episode import Reply
from fumehood.core.episode_spec import DataSource, EpisodeSpec, SeatSpec, surroundings_from_json
from fumehood.core.errors import SpecError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.json_values import Json, ordered_json
from fumehood.core.ledger import Budget, units_by_name
from fumehood.core.outcome import Refusal, RefusalKind
from fumehood.core.tools import Value
from fumehood.core.trace import ModelExchange, Record
from fumehood.wire.conversations import (
    conversation_from_pb,
    conversation_to_pb,
    seat_message_from_pb,
    seat_message_to_pb,
    tools_from_pb,
    tools_to_pb,
)
from fumehood.wire.exchanges import exchange_from_pb, exchange_to_pb
from fumehood.wire.ports import (
    EpisodeMessage,
    InlineAgent,
    Opened,
    PlayedInline,
    Records,
    SeatCalled,
    SeatSockets,
    SeatWorkEnded,
    SpecRejected,
    TaskView,
    TimeGranted,
)
from fumehood.wire.turns import turns_from_pb, turns_to_pb, wire_text
from fumehood_agent._proto.v1 import control_pb2, episode_pb2, tool_pb2, trace_pb2

LARGEST_COUNT = 2**63 - 1
"""What a count on the wire can be."""

REFUSAL_KINDS = {
    kind: tool_pb2.RefusalKind.Value(f"REFUSAL_KIND_{kind.name}") for kind in RefusalKind
}


def task_to_pb(view: TaskView) -> tool_pb2.GetTaskResponse:
    """Return the task as an agent reads it."""
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
    )


def reply_to_pb(reply: Reply | Refusal) -> tool_pb2.CallToolResponse:
    """Return the answer to a call."""
    if isinstance(reply, Refusal):
        return tool_pb2.CallToolResponse(
            refusal=refusal_to_pb(reply), ended=reply.kind is RefusalKind.ENDED
        )
    result, recorded = reply.result, reply.recorded_arguments
    response = tool_pb2.CallToolResponse(
        remaining=units_by_name(reply.remaining), ended=reply.ended
    )
    if isinstance(result, Value):
        response.value_json = ordered_json(result.output)
    else:
        response.failure.code = result.code
        response.failure.message = result.message
        response.failure.details_json = ordered_json(dict(result.details))
    if recorded is not None:
        response.recorded_arguments_json = ordered_json(recorded)
    return response


def submission_to_pb(counted: bool | TaskView | Refusal) -> tool_pb2.SubmitResponse:
    """Return the answer to a submission."""
    if isinstance(counted, Refusal):
        return tool_pb2.SubmitResponse(refusal=refusal_to_pb(counted))
    if isinstance(counted, TaskView):
        return tool_pb2.SubmitResponse(accepted=True, next=task_to_pb(counted))
    return tool_pb2.SubmitResponse(accepted=counted)


def refusal_to_pb(refusal: Refusal) -> tool_pb2.Refusal:
    """Return the wall's own no."""
    return tool_pb2.Refusal(
        kind=REFUSAL_KINDS[refusal.kind], limit=refusal.limit, actual=refusal.actual
    )


def spec_to_pb(spec: EpisodeSpec) -> episode_pb2.EpisodeSpec:
    """Return the episode as the service is told of it.

    Raises:
        SpecError: a text or a number cannot cross the wire.
    """
    plan: list[Json] = [rule.to_json() for rule in spec.fault_plan]
    return episode_pb2.EpisodeSpec(
        episode_id=wire_text("episode_id", spec.episode_id),
        world=wire_text("world", spec.world),
        profile=wire_text("profile", spec.profile),
        initial_state_json=ordered_json(spec.initial_state),
        fault_plan_json=ordered_json(plan),
        seed=_decimal("seed", spec.seed),
        seats=[_seat_to_pb(seat) for seat in spec.seats],
        surroundings_json=""
        if spec.data_source is None
        else ordered_json(spec.data_source.to_json()),
        conversation=conversation_to_pb(spec.conversation),
    )


def _seat_to_pb(seat: SeatSpec) -> episode_pb2.SeatSpec:
    return episode_pb2.SeatSpec(
        name=wire_text("seats.name", seat.name),
        instruction=wire_text("instruction", seat.instruction),
        budget=_budget_to_pb(seat.budget),
        further_turns=turns_to_pb(seat.further_turns),
        tools=tools_to_pb(seat.tools),
    )


def _budget_to_pb(budget: Budget) -> dict[str, int]:
    limits = budget.to_json()
    for name, limit in limits.items():
        if not 0 <= limit <= LARGEST_COUNT:
            raise SpecError(f"budget.{name}", f"must be from 0 to {LARGEST_COUNT}, is {limit}")
    return limits


def _decimal(field: str, number: int) -> str:
    try:
        return str(number)
    except ValueError as reason:
        raise SpecError(field, f"is too long a number: {reason}") from None


def spec_from_pb(spec: episode_pb2.EpisodeSpec) -> EpisodeSpec:
    """Return the episode that :func:`spec_to_pb` wrote.

    Raises:
        SpecError: a field does not hold what its comment says.
    """
    state = _loads("initial_state", spec.initial_state_json)
    if not isinstance(state, dict):
        raise SpecError("initial_state", "must be a JSON object")
    return EpisodeSpec(
        episode_id=spec.episode_id,
        world=spec.world,
        profile=spec.profile,
        initial_state=state,
        fault_plan=_plan_from_json(_loads("fault_plan", spec.fault_plan_json)),
        seed=_integer("seed", spec.seed),
        seats=tuple(
            SeatSpec(
                name=seat.name,
                instruction=seat.instruction,
                budget=_budget_from_pb(seat.budget),
                further_turns=turns_from_pb(seat.further_turns),
                tools=tools_from_pb(seat),
            )
            for seat in spec.seats
        ),
        data_source=_surroundings_from_json(spec.surroundings_json),
        conversation=conversation_from_pb(spec),
    )


def _surroundings_from_json(text: str) -> DataSource | None:
    return surroundings_from_json(_loads("data_source", text)) if text else None


def _integer(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SpecError(field, "is not a decimal number") from None


def _budget_from_pb(limits: Mapping[str, int]) -> Budget:
    try:
        return Budget(**limits)
    except ValueError as error:
        raise SpecError("seats.budget", str(error)) from None


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


def _loads(field: str, text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise SpecError(field, f"is not JSON that can be read: {reason}") from None
    return value


def message_to_pb(message: EpisodeMessage) -> control_pb2.OpenEpisodeResponse:
    """Return one message of an episode's stream."""
    match message:
        case Opened(seats):
            sockets = [
                control_pb2.SeatSockets(name=seat.name, directory=seat.directory) for seat in seats
            ]
            return control_pb2.OpenEpisodeResponse(opened=control_pb2.Opened(seats=sockets))
        case Records(records):
            lines = [record_to_pb(record) for record in records]
            return control_pb2.OpenEpisodeResponse(records=control_pb2.Records(records=lines))
        case SeatCalled() | SeatWorkEnded() | TimeGranted():
            return seat_message_to_pb(message)
        case SpecRejected(field, reason):
            error = control_pb2.SpecRejected(field=field, message=reason)
            return control_pb2.OpenEpisodeResponse(spec_rejected=error)
        case ModelExchange():
            return control_pb2.OpenEpisodeResponse(exchange=exchange_to_pb(message))


def message_from_pb(message: control_pb2.OpenEpisodeResponse) -> EpisodeMessage:
    """Return the message that :func:`message_to_pb` wrote.

    Raises:
        ValueError: the message is empty.
    """
    match message.WhichOneof("message"):
        case "opened":
            seats = message.opened.seats
            return Opened(tuple(SeatSockets(seat.name, seat.directory) for seat in seats))
        case "records":
            return Records(tuple(record_from_pb(record) for record in message.records.records))
        case "spec_rejected":
            return SpecRejected(message.spec_rejected.field, message.spec_rejected.message)
        case "exchange":
            return exchange_from_pb(message.exchange)
        case _:
            return seat_message_from_pb(message)


def played_to_pb(played: PlayedInline) -> control_pb2.PlayInlineResponse:
    """Return the message for an episode that was played inline."""
    message = control_pb2.PlayInlineResponse(
        agent_error=played.agent_error, exit_status=played.exit_status
    )
    if played.rejected is not None:
        message.spec_rejected.field = played.rejected.field
        message.spec_rejected.message = played.rejected.reason
    else:
        message.records.records.extend(map(record_to_pb, played.records))
    return message


def played_from_pb(message: control_pb2.PlayInlineResponse) -> PlayedInline:
    """Return what :func:`played_to_pb` wrote."""
    error = message.spec_rejected
    rejected = (
        SpecRejected(error.field, error.message) if message.HasField("spec_rejected") else None
    )
    records = tuple(map(record_from_pb, message.records.records))
    return PlayedInline(records, rejected, message.agent_error, message.exit_status)


def inline_agent_to_pb(agent: InlineAgent) -> control_pb2.InlineAgent:
    """Return the message for an agent that plays inline."""
    return control_pb2.InlineAgent(seat=agent.seat, name=agent.name, moves_json=agent.moves_json)


def inline_agent_from_pb(message: control_pb2.InlineAgent) -> InlineAgent:
    """Return what :func:`inline_agent_to_pb` wrote."""
    return InlineAgent(message.seat, message.name, message.moves_json)


def record_to_pb(record: Record) -> trace_pb2.TraceRecord:
    """Return one line of a trace."""
    return trace_pb2.TraceRecord(
        event_json=record.event_json,
        hash=record.hash,
        wall_ms=record.wall_ms,
        duration_us=record.duration_us,
    )


def record_from_pb(record: trace_pb2.TraceRecord) -> Record:
    """Return the line that :func:`record_to_pb` wrote."""
    return Record(record.event_json, record.hash, record.wall_ms, record.duration_us)
