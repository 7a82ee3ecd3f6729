"""What models were asked and answered, as messages."""

from __future__ import annotations

from fumehood.core.trace import ModelExchange
from fumehood_agent._proto.v1 import control_pb2


def exchange_to_pb(exchange: ModelExchange) -> control_pb2.ModelExchange:
    """Return one exchange as a message."""
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
    """Return the exchange that :func:`exchange_to_pb` wrote."""
    return ModelExchange(
        seat=message.seat,
        key=message.key,
        occurrence=message.occurrence,
        request=message.request,
        status=message.status,
        content_type=message.content_type,
        response=message.response,
    )
