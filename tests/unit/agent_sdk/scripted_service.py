"""A small tool service on a real Unix socket whose answers a test scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Lock, Semaphore
from typing import Any, Self

import grpc

from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent._proto.v1 import tool_pb2_grpc as pb_grpc

Answer = Callable[[pb.CallToolRequest], pb.CallToolResponse]

PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "again": {"type": "integer"}},
    "required": ["text"],
    "additionalProperties": False,
}


def value(output: dict[str, Any], **more: Any) -> pb.CallToolResponse:
    return pb.CallToolResponse(value_json=json.dumps(output), **more)


def failure(code: str, message: str = "no", **details: Any) -> pb.CallToolResponse:
    return pb.CallToolResponse(
        failure=pb.Failure(code=code, message=message, details_json=json.dumps(details))
    )


def refusal(kind: pb.RefusalKind.ValueType, limit: int = 0, actual: int = 0) -> pb.CallToolResponse:
    return pb.CallToolResponse(refusal=pb.Refusal(kind=kind, limit=limit, actual=actual))


def echo(request: pb.CallToolRequest) -> pb.CallToolResponse:
    return pb.CallToolResponse(value_json=request.arguments_json)


class ScriptedService(pb_grpc.ToolServiceServicer):
    """Answers every call with ``answer``; the same call_id is carried out once.

    A context manager.
    """

    def __init__(
        self, path: Path, answer: Answer = echo, message_bytes_max: int = 64 * 1024 * 1024
    ) -> None:
        self.path = path
        self.answer = answer
        self.received: list[pb.CallToolRequest] = []
        self.carried_out = 0
        self.submitted: list[pb.SubmitRequest] = []
        self.reported: list[int] = []
        self.streams_opened = 0
        self.has_begun = Event()
        self.has_begun.set()
        """Cleared to let requests for the task wait."""
        self.tasks_requested = Semaphore(0)
        self.task_deadlines_s: list[float] = []
        """Time until the deadline of each request for the task; enormous without a deadline."""
        self._answers_by_id: dict[str, pb.CallToolResponse] = {}
        self._locks_by_id: dict[str, Lock] = {}
        self._lock = Lock()
        options = [("grpc.max_receive_message_length", message_bytes_max)]
        self._server = grpc.server(ThreadPoolExecutor(16), options=options)
        pb_grpc.add_ToolServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{path}")

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.vanish()

    def vanish(self) -> None:
        """Break every connection at once."""
        self.has_begun.set()
        self._server.stop(grace=None).wait()

    def wait_for_patient_request(self) -> None:
        """Wait until a request for the task has no deadline; then let the work begin."""
        try:
            while max(self.task_deadlines_s, default=0.0) < 3600:
                assert self.tasks_requested.acquire(timeout=20)
        finally:
            self.has_begun.set()

    def GetTask(
        self, request: pb.GetTaskRequest, context: grpc.ServicerContext
    ) -> pb.GetTaskResponse:
        self.task_deadlines_s.append(context.time_remaining())
        self.tasks_requested.release()
        self.has_begun.wait()
        tool = pb.ToolSpec(
            name="echo", description="Says it again.", parameters_json=json.dumps(PARAMETERS)
        )
        return pb.GetTaskResponse(
            instruction="Say «ψ» twice.", tools=[tool], remaining={"steps": 6, "retries": 0}
        )

    def CallTool(
        self, request: pb.CallToolRequest, context: grpc.ServicerContext
    ) -> pb.CallToolResponse:
        with self._lock:
            self.received.append(request)
            same_call = self._locks_by_id.setdefault(request.call_id, Lock())
        with same_call if request.call_id else nullcontext():
            known = self._answers_by_id.get(request.call_id) if request.call_id else None
            if known is not None:
                return known
            answer = self.answer(request)
            with self._lock:
                self.carried_out += 1
                self._answers_by_id[request.call_id] = answer
            return answer

    def Submit(self, request: pb.SubmitRequest, context: grpc.ServicerContext) -> pb.SubmitResponse:
        self.submitted.append(request)
        return pb.SubmitResponse(accepted=len(self.submitted) == 1)

    def Report(self, request: pb.ReportRequest, context: grpc.ServicerContext) -> pb.ReportResponse:
        self.reported.append(request.problem)
        return pb.ReportResponse(recorded=True)

    def Interact(
        self, request_iterator: Iterator[pb.InteractRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.InteractResponse]:
        self.streams_opened += 1
        for request in request_iterator:
            match request.WhichOneof("request"):
                case "call":
                    yield pb.InteractResponse(call=self.CallTool(request.call, context))
                case "report":
                    yield pb.InteractResponse(report=self.Report(request.report, context))
                case "submit":
                    yield pb.InteractResponse(submit=self.Submit(request.submit, context))


class LossyService(ScriptedService):
    """Loses the responses to the first calls that it receives."""

    def __init__(self, path: Path, losses: int) -> None:
        super().__init__(path)
        self.lose: Callable[[], None] = lambda: None
        """Breaks the connection of the caller."""
        self._losses = losses

    def CallTool(
        self, request: pb.CallToolRequest, context: grpc.ServicerContext
    ) -> pb.CallToolResponse:
        response = super().CallTool(request, context)
        if len(self.received) <= self._losses:
            self.lose()
        return response
