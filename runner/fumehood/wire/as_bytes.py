"""Encodes specifications, traces and model responses as bytes, for transport over other channels
than gRPC.

Every ``x_from_bytes`` returns what ``x_to_bytes`` received, and raises ``ValueError`` for other
bytes.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.trace import ModelExchange, Record
from fumehood.wire.convert import (
    exchange_from_pb,
    exchange_to_pb,
    record_from_pb,
    record_to_pb,
    spec_from_pb,
    spec_to_pb,
)
from fumehood_agent._proto.v1 import control_pb2, episode_pb2

_M = TypeVar("_M", bound=Message)


def spec_to_bytes(spec: EpisodeSpec) -> bytes:
    """Encode the specification of an episode.

    Raises:
        SpecError: it cannot be sent.
    """
    return spec_to_pb(spec).SerializeToString()


def spec_from_bytes(encoded: bytes) -> EpisodeSpec:
    """Decode what :func:`spec_to_bytes` returned."""
    try:
        return spec_from_pb(_decoded(episode_pb2.EpisodeSpec(), encoded))
    except SpecError as error:
        raise ValueError(str(error)) from None


def exchange_to_bytes(exchange: ModelExchange) -> bytes:
    """Encode a model request with its response."""
    return exchange_to_pb(exchange).SerializeToString()


def exchange_from_bytes(encoded: bytes) -> ModelExchange:
    """Decode what :func:`exchange_to_bytes` returned."""
    return exchange_from_pb(_decoded(control_pb2.ModelExchange(), encoded))


def records_to_bytes(records: tuple[Record, ...]) -> bytes:
    """Encode the records of a trace."""
    return control_pb2.Records(records=map(record_to_pb, records)).SerializeToString()


def records_from_bytes(encoded: bytes) -> tuple[Record, ...]:
    """Decode what :func:`records_to_bytes` returned."""
    return tuple(map(record_from_pb, _decoded(control_pb2.Records(), encoded).records))


def _decoded(message: _M, encoded: bytes) -> _M:
    try:
        message.ParseFromString(encoded)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    return message
