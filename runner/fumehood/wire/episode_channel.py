"""The messages between a service and the process of one episode, as bytes.

They are the messages of ``ControlService``: the request to open, then the stream of responses, and
in the other direction :data:`BEGIN` if the episode is held, and one request to close.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

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

BEGIN = b"begin"
"""Begins a held episode. No request to close has these bytes."""
PARTS_MAX = 1024
"""Parts of one message, such as records. An unchanged process sends at most 256 at once. Each part
takes some hundred bytes of memory when it is parsed, also if it has two bytes."""


def opening_to_bytes(
    spec: EpisodeSpec, exchanges: Sequence[ModelExchange] = (), *, is_held: bool = False
) -> bytes:
    """Return the request to open an episode.

    Raises:
        SpecError: the specification cannot be sent.
    """
    recorded = [exchange_to_pb(exchange) for exchange in exchanges]
    request = control_pb2.OpenEpisodeRequest(
        spec=spec_to_pb(spec), exchanges=recorded, is_held=is_held
    )
    return request.SerializeToString()


def opening_from_bytes(data: bytes) -> tuple[EpisodeSpec, list[ModelExchange], bool]:
    """Return the episode, its recorded exchanges and whether it is held, from the bytes of
    :func:`opening_to_bytes`.

    Raises:
        SpecError: a field of the specification is invalid.
    """
    request = control_pb2.OpenEpisodeRequest.FromString(data)
    exchanges = [exchange_from_pb(exchange) for exchange in request.exchanges]
    return spec_from_pb(request.spec), exchanges, request.is_held


def message_to_bytes(message: EpisodeMessage) -> bytes:
    """Return one message of an episode's stream."""
    return message_to_pb(message).SerializeToString()


def message_from_bytes(data: bytes) -> EpisodeMessage:
    """Return the message that :func:`message_to_bytes` wrote.

    Raises:
        ValueError: the bytes are not such a message, or have more than ``PARTS_MAX`` parts.
    """
    _refuse_many_parts(data)
    try:
        message = message_from_pb(control_pb2.OpenEpisodeResponse.FromString(data))
    except DecodeError as error:
        raise ValueError(f"not a message of an episode: {error}") from None
    # Parts that no reader knows would not count for the limit of the trace.
    if message_to_bytes(message) != data:
        raise ValueError("not a message of an episode: it has unknown parts")
    return message


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


def _refuse_many_parts(data: bytes) -> None:
    """Check the number of parts before they are parsed.

    Raises:
        ValueError: there are too many, or the message is not one field.
    """
    fields = list(islice(_fields(data, 0, len(data)), 2))
    if len(fields) != 1:
        raise ValueError("a message of an episode must have one field")
    ((start, end),) = fields
    if sum(1 for _ in islice(_fields(data, start, end), PARTS_MAX + 1)) > PARTS_MAX:
        raise ValueError(f"a message of an episode has more than {PARTS_MAX} parts")


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the content of each field begins and ends.

    The last three bits of a tag state its wire type: 0 a number, 1 eight bytes, 2 a length with so
    many bytes, 5 four bytes. Source: protobuf.dev/programming-guides/encoding.

    Raises:
        ValueError: the bytes are no fields.
    """
    while at < end:
        tag, at = _varint(data, at, end)
        match tag & 7:
            case 0:
                _, after = _varint(data, at, end)
            case 1:
                after = at + 8
            case 2:
                size, at = _varint(data, at, end)
                after = at + size
            case 5:
                after = at + 4
            case _:
                raise ValueError("not a message of an episode: unknown wire type")
        if after > end:
            raise ValueError("not a message of an episode: a field is cut")
        yield at, after
        at = after


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = 0
    for position in range(at, min(at + 10, end)):
        byte = data[position]
        value |= (byte & 127) << 7 * (position - at)
        if byte < 128:
            return value, position + 1
    raise ValueError("not a message of an episode: a number is cut")
