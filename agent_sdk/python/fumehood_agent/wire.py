"""Between the messages of the protocol and this package's own words; nobody else knows a message or a status.

Arguments and outputs travel as JSON text, which keeps ``1`` and ``1.0`` apart and integers whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import grpc

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.errors import (
    ConnectionLost,
    Ended,
    FumehoodError,
    RefusalKind,
    Refused,
    ServiceFailed,
)
from fumehood_agent.seat import Failure, JsonObject, Remaining, Reply, Task, Tool, Value

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}


def arguments_to_json(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON text.

    Raises:
        Refused: they cannot be written down.
    """
    try:
        return _encode(dict(arguments) if isinstance(arguments, Mapping) else arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def call_to_pb(name: str, arguments_json: str, call_id: str = "") -> pb.CallToolRequest:
    """Return the message for one call.

    Raises:
        Refused: a text cannot be written down.
    """
    try:
        return pb.CallToolRequest(tool_name=name, arguments_json=arguments_json, call_id=call_id)
    except (TypeError, ValueError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def answer_to_pb(text: str) -> pb.SubmitRequest:
    """Return the message that ends the work with an answer.

    Raises:
        Refused: the text cannot be written down.
    """
    try:
        return pb.SubmitRequest(answer=text)
    except (TypeError, ValueError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def give_up_to_pb(reason: str) -> pb.SubmitRequest:
    """Return the message that ends the work by giving up.

    Raises:
        Refused: the text cannot be written down.
    """
    try:
        return pb.SubmitRequest(give_up_reason=reason)
    except (TypeError, ValueError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def task_from_pb(message: pb.GetTaskResponse) -> Task:
    """Return the task that a message holds."""
    tools = tuple(
        Tool(each.name, _object(each.parameters_json), each.description) for each in message.tools
    )
    # Somebody who knows nothing of turns says none.
    return Task(message.instruction, tools, _remaining(message.remaining), message.turn or 1)


def next_from_pb(message: pb.SubmitResponse) -> Task | None:
    """Return what there is to do after an answer; None where the work has ended.

    Raises:
        Refused: the answer was not let through.
    """
    if message.HasField("refusal"):
        raise refusal_from_pb(message.refusal)
    return task_from_pb(message.next) if message.HasField("next") else None


def reply_from_pb(message: pb.CallToolResponse) -> Reply:
    """Return the reply that a message holds.

    Raises:
        Ended: the work had ended.
        Refused: the call was not let through.
        ServiceFailed: it is none of the answers there are.
    """
    recorded = (
        message.recorded_arguments_json if message.HasField("recorded_arguments_json") else None
    )
    return Reply(
        _result_from_pb(message),
        _remaining(message.remaining),
        message.ended,
        None if recorded is None else _object(recorded),
    )


def _result_from_pb(message: pb.CallToolResponse) -> Value | Failure:
    match message.WhichOneof("result"):
        case "value_json":
            return Value(_object(message.value_json))
        case "failure":
            failure = message.failure
            return Failure(failure.code, failure.message, _object(failure.details_json or "{}"))
        case "refusal":
            raise refusal_from_pb(message.refusal)
    raise ServiceFailed("an answer without a result")


def refusal_from_pb(message: pb.Refusal) -> Refused | ServiceFailed:
    """Return the error that a refusal stands for."""
    try:
        kind = RefusalKind(message.kind)
    except ValueError:
        return ServiceFailed(f"a refusal of the unknown kind {message.kind}")
    return Ended() if kind is RefusalKind.ENDED else Refused(kind, message.limit, message.actual)


def is_late(error: grpc.RpcError) -> bool:
    """Tell whether an exchange failed because its deadline passed."""
    return _status_of(error)[0] is grpc.StatusCode.DEADLINE_EXCEEDED


def error_from_rpc(
    error: grpc.RpcError, *, path: str, answered: int, sent_bytes: int
) -> FumehoodError:
    """Return the error that a failed exchange stands for.

    Args:
        error: from gRPC.
        path: of the socket.
        answered: calls of this session that were answered before.
        sent_bytes: size of the message that was sent.
    """
    code, details = _status_of(error)
    if code in _LOST:
        return ConnectionLost(path, answered)
    # gRPC itself turns away a message above the receiver's limit, before anyone could answer it.
    limit = re.search(r"\(\d+ vs\. (\d+)\)", details)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and limit is not None:
        return Refused(RefusalKind.TOO_LARGE, int(limit[1]), sent_bytes)
    return ServiceFailed(f"{path}: {code.name}: {details}")


def _status_of(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    # What is raised is always one of these, though neither threads nor asyncio promise it by type.
    assert isinstance(error, grpc.Call | grpc.aio.AioRpcError)
    return error.code(), error.details() or ""


def _remaining(units: Mapping[str, int]) -> Remaining:
    # A map has no order on the wire; an agent must see the same order in every run.
    return dict(sorted(units.items()))


def _object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ServiceFailed(f"text that is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ServiceFailed(f"a JSON {type(value).__name__} where an object belongs")
    return value
