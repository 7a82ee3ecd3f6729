"""Converts between protobuf messages and the types of this package.

No other module handles gRPC statuses. Arguments and outputs are sent as JSON text, which
distinguishes ``1`` from ``1.0`` and keeps large integers.
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
from fumehood_agent.seat import (
    Failure,
    JsonObject,
    ModelProblem,
    Remaining,
    Reply,
    Task,
    Tool,
    Value,
)

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}


def arguments_to_json(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON text.

    Raises:
        Refused: they have no JSON form.
    """
    try:
        return _encode(dict(arguments) if isinstance(arguments, Mapping) else arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def call_to_pb(name: str, arguments_json: str, call_id: str = "") -> pb.CallToolRequest:
    """Return the message for one call.

    Raises:
        Refused: a text is not valid Unicode.
    """
    try:
        return pb.CallToolRequest(tool_name=name, arguments_json=arguments_json, call_id=call_id)
    except (TypeError, ValueError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def answer_to_pb(text: str, confidence: float | None = None) -> pb.SubmitRequest:
    """Return the message that submits an answer.

    Raises:
        Refused: the text is not valid Unicode, or the confidence is no number.
    """
    try:
        return pb.SubmitRequest(answer=text, confidence=confidence)
    except (TypeError, ValueError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def give_up_to_pb(reason: str, confidence: float | None = None) -> pb.SubmitRequest:
    """Return the message that gives up.

    Raises:
        Refused: the text is not valid Unicode, or the confidence is no number.
    """
    try:
        return pb.SubmitRequest(give_up_reason=reason, confidence=confidence)
    except (TypeError, ValueError) as error:
        raise Refused(RefusalKind.MALFORMED, reason=str(error)) from error


def problem_to_pb(problem: ModelProblem) -> pb.ModelProblem.ValueType:
    """Return the name of a problem with the model on the wire."""
    return pb.ModelProblem.Value(f"MODEL_PROBLEM_{problem.name}")


def task_from_pb(message: pb.GetTaskResponse) -> Task:
    """Convert a task."""
    tools = tuple(
        Tool(tool.name, _object(tool.parameters_json), tool.description) for tool in message.tools
    )
    # A service that sends no turn number has one turn.
    turn = message.turn or 1
    remaining = _remaining(message.remaining)
    return Task(message.instruction, tools, remaining, turn, message.asks_confidence)


def next_from_pb(message: pb.SubmitResponse) -> Task | None:
    """Convert the next task after an answer; None if the work has ended.

    Raises:
        Refused: the service refused the answer.
    """
    if message.HasField("refusal"):
        raise refusal_from_pb(message.refusal)
    return task_from_pb(message.next) if message.HasField("next") else None


def reply_from_pb(message: pb.CallToolResponse) -> Reply:
    """Convert a reply.

    Raises:
        Ended: the work had ended.
        Refused: the service refused the call.
        ServiceFailed: the message contains no result.
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
    raise ServiceFailed("the response contains no result")


def refusal_from_pb(message: pb.Refusal) -> Refused | ServiceFailed:
    """Return the exception for a refusal."""
    try:
        kind = RefusalKind(message.kind)
    except ValueError:
        return ServiceFailed(f"unknown refusal kind {message.kind}")
    return Ended() if kind is RefusalKind.ENDED else Refused(kind, message.limit, message.actual)


def is_late(error: grpc.RpcError) -> bool:
    """Return whether an RPC failed because its deadline passed."""
    return _status_of(error)[0] is grpc.StatusCode.DEADLINE_EXCEEDED


def error_from_rpc(
    error: grpc.RpcError, *, path: str, answered: int, sent_bytes: int
) -> FumehoodError:
    """Return the exception for a failed RPC.

    Args:
        error: from gRPC.
        path: of the socket.
        answered: calls of this session that got a response before.
        sent_bytes: size of the message that was sent.
    """
    code, details = _status_of(error)
    if code in _LOST:
        return ConnectionLost(path, answered)
    # gRPC rejects a message above the receiver's limit before the service can answer.
    limit = re.search(r"\(\d+ vs\. (\d+)\)", details)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and limit is not None:
        return Refused(RefusalKind.TOO_LARGE, int(limit[1]), sent_bytes)
    return ServiceFailed(f"{path}: {code.name}: {details}")


def _status_of(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    # gRPC always raises one of these, although its type hints do not state it. The second one
    # imports asyncio.
    if not isinstance(error, grpc.Call):
        assert isinstance(error, grpc.aio.AioRpcError)
    return error.code(), error.details() or ""


def _remaining(units: Mapping[str, int]) -> Remaining:
    # A map has no order on the wire; an agent must see the same order in every run.
    return dict(sorted(units.items()))


def _object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ServiceFailed(f"the response contains invalid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ServiceFailed(
            f"the response contains a JSON {type(value).__name__} instead of an object"
        )
    return value
