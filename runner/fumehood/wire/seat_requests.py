"""Answers an agent's requests at its seat: the part that all interfaces share.

gRPC, HTTP, MCP and agents inside the service use these functions.
"""

from __future__ import annotations

from math import nan

from fumehood.core.episode import Reply
from fumehood.core.outcome import Finished, GaveUp, ModelProblem, Refusal, Stopped
from fumehood.wire.convert import reply_to_pb, submission_to_pb, task_to_pb, write_reply
from fumehood.wire.ports import SeatPort
from fumehood_agent._proto.v1 import tool_pb2

_PROBLEMS = {
    tool_pb2.ModelProblem.Value(f"MODEL_PROBLEM_{problem.name}"): problem
    for problem in ModelProblem
}

PROBLEMS = {problem.value: number for number, problem in _PROBLEMS.items()}
"""Name of each problem with a model → its number on the wire."""


def problem_number(name: object) -> tool_pb2.ModelProblem.ValueType:
    """Return the number of a problem; UNSPECIFIED for other values."""
    unknown = tool_pb2.MODEL_PROBLEM_UNSPECIFIED
    return PROBLEMS.get(name, unknown) if isinstance(name, str) else unknown


def answer_interaction(
    seat: SeatPort, request: tool_pb2.InteractRequest
) -> tool_pb2.InteractResponse:
    """Answer one request of a stream; an empty request counts as a call without a tool name."""
    match request.WhichOneof("request"):
        case "get_task":
            return tool_pb2.InteractResponse(task=task_to_pb(seat.view_task()))
        case "report":
            return tool_pb2.InteractResponse(report=answer_report(seat, request.report))
        case "submit":
            return tool_pb2.InteractResponse(submit=answer_submission(seat, request.submit))
        case _:
            response = tool_pb2.InteractResponse()
            write_reply(_call(seat, request.call), response.call)
            return response


def answer_call(seat: SeatPort, request: tool_pb2.CallToolRequest) -> tool_pb2.CallToolResponse:
    """Execute a call and return its reply."""
    return reply_to_pb(_call(seat, request))


def _call(seat: SeatPort, request: tool_pb2.CallToolRequest) -> Reply | Refusal:
    return seat.call(request.tool_name, request.arguments_json, request.call_id)


def answer_submission(seat: SeatPort, request: tool_pb2.SubmitRequest) -> tool_pb2.SubmitResponse:
    """Submit an answer, give up, or stop."""
    end: Finished | GaveUp | Stopped = Finished(request.answer)
    match request.WhichOneof("end"):
        case "give_up_reason":
            end = GaveUp(request.give_up_reason)
        case "stopped":
            # A problem that this service does not know still ends the work.
            end = Stopped(_PROBLEMS.get(request.stopped, ModelProblem.REQUEST_REFUSED))
    confidence = request.confidence if request.HasField("confidence") else None
    return submission_to_pb(seat.submit(end, confidence))


def stated_number(value: object) -> float | None:
    """Return a confidence that is stated as a number or as text; NaN, which the seat refuses, for
    anything else."""
    if value is None:
        return None
    try:
        return float(value) if isinstance(value, int | float | str) else nan
    except (ValueError, OverflowError):
        return nan


def answer_report(seat: SeatPort, request: tool_pb2.ReportRequest) -> tool_pb2.ReportResponse:
    """Record a problem with the model; unknown ones are ignored."""
    problem = _PROBLEMS.get(request.problem)
    return tool_pb2.ReportResponse(recorded=problem is not None and seat.report(problem))
