"""The messages between a service and the process of one episode, as bytes.

They are the messages of ``ControlService``: the request to open, then the stream of responses, and
in the other direction one request to close.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.trace import ModelExchange
from fumehood.wire.convert import (
    exchange_from_pb,
    exchange_to_pb,
    message_from_pb,
    message_to_pb,
    spec_from_pb,
    spec_to_pb,
)
from fumehood.wire.ports import EpisodeMessage
from fumehood_agent._proto.v1 import control_pb2


def opening_to_bytes(spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = ()) -> bytes:
    """Return the request to open an episode.

    Raises:
        SpecError: the specification cannot be sent.
    """
    recorded = [exchange_to_pb(exchange) for exchange in exchanges]
    request = control_pb2.OpenEpisodeRequest(spec=spec_to_pb(spec), exchanges=recorded)
    return request.SerializeToString()


def opening_from_bytes(data: bytes) -> tuple[EpisodeSpec, list[ModelExchange]]:
    """Return the episode and its recorded exchanges that :func:`opening_to_bytes` wrote.

    Raises:
        SpecError: a field of the specification is invalid.
    """
    request = control_pb2.OpenEpisodeRequest.FromString(data)
    return spec_from_pb(request.spec), [
        exchange_from_pb(exchange) for exchange in request.exchanges
    ]


def message_to_bytes(message: EpisodeMessage) -> bytes:
    """Return one message of an episode's stream."""
    return message_to_pb(message).SerializeToString()


def message_from_bytes(data: bytes) -> EpisodeMessage:
    """Return the message that :func:`message_to_bytes` wrote.

    Raises:
        ValueError: the bytes are not such a message.
    """
    try:
        return message_from_pb(control_pb2.OpenEpisodeResponse.FromString(data))
    except DecodeError as error:
        raise ValueError(f"not a message of an episode: {error}") from None


def close_to_bytes(*, timed_out: bool) -> bytes:
    """Return the request to close an episode."""
    reason = (
        control_pb2.CLOSE_REASON_TIMED_OUT if timed_out else control_pb2.CLOSE_REASON_AGENT_DONE
    )
    return control_pb2.CloseEpisodeRequest(reason=reason).SerializeToString()


def close_from_bytes(data: bytes) -> bool:
    """Return whether the wall time is used up, from what :func:`close_to_bytes` wrote."""
    request = control_pb2.CloseEpisodeRequest.FromString(data)
    return request.reason == control_pb2.CLOSE_REASON_TIMED_OUT
