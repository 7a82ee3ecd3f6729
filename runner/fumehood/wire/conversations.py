"""Seats that talk, what is theirs and how they stand, between the core's words and the wire's."""

from __future__ import annotations

import json

from fumehood.core.conversation import ConversationSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import ordered_json
from fumehood.wire.ports import SeatCalled, SeatWorkEnded, TimeGranted
from fumehood.wire.turns import wire_text
from fumehood_agent._proto.v1 import control_pb2, episode_pb2

SeatMessage = SeatCalled | SeatWorkEnded | TimeGranted
"""What is told of one seat while an episode goes on."""


def conversation_to_pb(given: ConversationSpec | None) -> episode_pb2.Conversation | None:
    """Return how the seats of an episode talk; None where they do not."""
    if given is None:
        return None
    rule = wire_text("conversation.rule", given.rule)
    return episode_pb2.Conversation(rule=rule, settings_json=ordered_json(given.settings))


def conversation_from_pb(spec: episode_pb2.EpisodeSpec) -> ConversationSpec | None:
    """Return what :func:`conversation_to_pb` wrote.

    Raises:
        SpecError: the settings are no JSON object.
    """
    if not spec.HasField("conversation"):
        return None
    try:
        settings = json.loads(spec.conversation.settings_json)
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise SpecError("conversation.settings", "must be a JSON object")
    return ConversationSpec(spec.conversation.rule, settings)


def tools_to_pb(names: tuple[str, ...] | None) -> episode_pb2.ToolNames | None:
    """Return which tools a seat has; None for all."""
    if names is None:
        return None
    return episode_pb2.ToolNames(names=[wire_text("seats.tools", name) for name in names])


def tools_from_pb(seat: episode_pb2.SeatSpec) -> tuple[str, ...] | None:
    """Return what :func:`tools_to_pb` wrote."""
    return tuple(seat.tools.names) if seat.HasField("tools") else None


def seat_message_to_pb(message: SeatMessage) -> control_pb2.OpenEpisodeResponse:
    """Return how a seat stands now."""
    match message:
        case SeatCalled(name):
            return control_pb2.OpenEpisodeResponse(seat_called=control_pb2.SeatCalled(name=name))
        case SeatWorkEnded(name):
            return control_pb2.OpenEpisodeResponse(
                seat_work_ended=control_pb2.SeatWorkEnded(name=name)
            )
        case TimeGranted(name, granted_ms):
            granted = control_pb2.TimeGranted(name=name, granted_ms=granted_ms)
            return control_pb2.OpenEpisodeResponse(time_granted=granted)


def seat_message_from_pb(message: control_pb2.OpenEpisodeResponse) -> SeatMessage:
    """Return what :func:`seat_message_to_pb` wrote.

    Raises:
        ValueError: the message is empty.
    """
    match message.WhichOneof("message"):
        case "seat_called":
            return SeatCalled(message.seat_called.name)
        case "seat_work_ended":
            return SeatWorkEnded(message.seat_work_ended.name)
        case "time_granted":
            return TimeGranted(message.time_granted.name, message.time_granted.granted_ms)
        case _:
            raise ValueError("an empty message")
