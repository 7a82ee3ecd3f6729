"""The ways to reach a seat over its second socket: Connect's JSON, and MCP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from google.protobuf import json_format
from google.protobuf.message import Message

from fumehood.wire.http.listener import HttpLimits, HttpListener, LoopThread
from fumehood.wire.http.paths import FAILURE_STATUS, REFUSAL_STATUS, REMAINING_HEADER
from fumehood.wire.http.seat_app import seat_app
from fumehood.wire.ports import SeatPort
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.parts.http import HttpSeat
from tests.parts.mcp import McpSeat

M = TypeVar("M", bound=Message)


class Posted:
    """Each message a POST with JSON."""

    lacks = frozenset[str]()

    def __init__(self, directory: str) -> None:
        self._seat = HttpSeat(directory)

    def task(self) -> pb.GetTaskResponse:
        return self._ask("GetTask", pb.GetTaskRequest(), pb.GetTaskResponse)

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        return self._ask("CallTool", request, pb.CallToolResponse)

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        return self._ask("Submit", request, pb.SubmitResponse)

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        return self._ask("Report", request, pb.ReportResponse)

    def hang_up(self) -> None:
        self._seat.close()

    def _ask(self, method: str, request: Message, kind: type[M]) -> M:
        status, body = self._seat.send(
            f"/fumehood.v1.ToolService/{method}", json_format.MessageToJson(request)
        )
        assert status == 200, body
        return json_format.Parse(body, kind())


class Plain:
    """Plain HTTP: a tool is a path; the reply is assembled from status, headers and body."""

    lacks = frozenset({"recorded arguments"})

    def __init__(self, directory: str) -> None:
        self._seat = HttpSeat(directory)

    def task(self) -> pb.GetTaskResponse:
        _, instruction = self._seat.send("/task", "", method="GET")
        _, tools = self._seat.send("/tools", "", method="GET")
        _, left = self._seat.rpc("GetTask", {})
        return pb.GetTaskResponse(
            instruction=instruction.decode(),
            tools=[
                pb.ToolSpec(
                    name=tool["name"],
                    description=tool["description"],
                    parameters_json=json.dumps(tool["parameters"]),
                )
                for tool in json.loads(tools)
            ],
            remaining={kind: int(units) for kind, units in left.get("remaining", {}).items()},
            asks_confidence=left.get("asksConfidence", False),
        )

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        path = f"/call/{quote(request.tool_name, safe='')}"
        headers = {"fumehood-call-id": request.call_id}
        answer = self._seat.open(path, request.arguments_json.encode(), headers)
        status, body = answer.status, answer.read().decode()
        if status == REFUSAL_STATUS:
            refusal = _refusal(json.loads(body))
            return pb.CallToolResponse(refusal=refusal, ended=refusal.kind == pb.REFUSAL_KIND_ENDED)
        response = pb.CallToolResponse(ended=answer.headers["fumehood-ended"] == "true")
        response.remaining.update(json.loads(answer.headers[REMAINING_HEADER]))
        if status == FAILURE_STATUS:
            failure = json.loads(body)
            response.failure.code, response.failure.message = failure["code"], failure["message"]
            response.failure.details_json = json.dumps(failure["details"], separators=(",", ":"))
        else:
            response.value_json = body
        return response

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        path, text = {
            "give_up_reason": ("/give_up", request.give_up_reason),
            "stopped": ("/stop", problem_name(request.stopped)),
        }.get(str(request.WhichOneof("end")), ("/submit", request.answer))
        stated = {name: str(value) for name, value in _stated(request).items()}
        headers = {f"fumehood-{name}": value for name, value in stated.items()}
        status, body = self._seat.send(path, text.encode(), headers)
        answer = json.loads(body)
        if status == REFUSAL_STATUS:
            return pb.SubmitResponse(refusal=_refusal(answer))
        if "next" not in answer:
            return pb.SubmitResponse(accepted=answer["accepted"])
        following = self.task()
        assert following.instruction == answer["next"]
        following.turn = answer["turn"]
        return pb.SubmitResponse(accepted=answer["accepted"], next=following)

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        _, body = self._seat.send("/report", problem_name(request.problem).encode())
        return pb.ReportResponse(recorded=json.loads(body)["recorded"])

    def hang_up(self) -> None:
        self._seat.close()


def _stated(request: pb.SubmitRequest) -> dict[str, float]:
    return {"confidence": request.confidence} if request.HasField("confidence") else {}


def problem_name(number: pb.ModelProblem.ValueType) -> str:
    """Return the name of a problem with a model, as paths, MCP and traces contain it."""
    return pb.ModelProblem.Name(number).removeprefix("MODEL_PROBLEM_").lower()


def _refusal(words: dict[str, Any]) -> pb.Refusal:
    kind = pb.RefusalKind.Value(f"REFUSAL_KIND_{words['refusal'].upper()}")
    return pb.Refusal(kind=kind, limit=words["limit"], actual=words["actual"])


class ByMcp:
    """Each call a ``tools/call``; the task as MCP describes it."""

    lacks = frozenset({"any text", "any number"})
    """The MCP library rejects arguments that are not an object."""

    def __init__(self, directory: str) -> None:
        self._seat = McpSeat(directory)

    def task(self) -> pb.GetTaskResponse:
        result = self._seat.request("tools/list")["result"]
        task = json_format.ParseDict(result["_meta"]["fumehood.v1"], pb.GetTaskResponse())
        task.instruction = self._seat.initialized["instructions"]
        tools = [
            pb.ToolSpec(
                name=tool["name"],
                description=tool.get("description", ""),
                parameters_json=json.dumps(tool["inputSchema"]),
            )
            for tool in result["tools"]
        ]
        assert [tool.name for tool in tools[-2:]] == ["submit", "give_up"]
        task.tools.extend(tools[:-2])
        return task

    def send(self, request: pb.CallToolRequest) -> pb.CallToolResponse:
        arguments = json.loads(request.arguments_json or "{}")
        result = self._seat.call(request.tool_name, arguments, request.call_id)
        answer = json_format.ParseDict(result["_meta"]["fumehood.v1"], pb.CallToolResponse())
        (text,) = [part["text"] for part in result["content"]]
        if answer.WhichOneof("result") == "value_json":
            answer.value_json = text
        assert bool(result.get("isError")) == (answer.WhichOneof("result") != "value_json")
        return answer

    def end(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        if request.WhichOneof("end") == "give_up_reason":
            result = self._seat.call(
                "give_up", {"reason": request.give_up_reason, **_stated(request)}
            )
        elif request.WhichOneof("end") == "stopped":
            problem = problem_name(request.stopped)
            result = self._seat.call("fumehood.v1/stop", {"problem": problem})
        else:
            result = self._seat.call("submit", {"answer": request.answer, **_stated(request)})
        return json_format.ParseDict(result["_meta"]["fumehood.v1"], pb.SubmitResponse())

    def report(self, request: pb.ReportRequest) -> pb.ReportResponse:
        problem = problem_name(request.problem)
        result = self._seat.call("fumehood.v1/report", {"problem": problem})
        return json_format.ParseDict(result["_meta"]["fumehood.v1"], pb.ReportResponse())

    def hang_up(self) -> None:
        self._seat.close()


@contextmanager
def by_http(port: SeatPort, directory: str) -> Iterator[Posted]:
    """Serve the port in ``directory`` and reach it by plain HTTP."""
    with http_served(port, directory):
        way = Posted(directory)
        yield way
        way.hang_up()


@contextmanager
def by_paths(port: SeatPort, directory: str) -> Iterator[Plain]:
    """Serve the port in ``directory`` and reach it as shells do."""
    with http_served(port, directory):
        way = Plain(directory)
        yield way
        way.hang_up()


@contextmanager
def by_mcp(port: SeatPort, directory: str) -> Iterator[ByMcp]:
    """Serve the port in ``directory`` and reach it as an MCP server."""
    with http_served(port, directory):
        way = ByMcp(directory)
        yield way
        way.hang_up()


@contextmanager
def http_served(port: SeatPort, directory: str, limits: HttpLimits | None = None) -> Iterator[None]:
    """Serve the port on ``http.sock`` in ``directory``."""
    chosen = limits or HttpLimits()
    loop = LoopThread()
    with ThreadPoolExecutor(4) as threads:
        listener = HttpListener(
            Path(directory, "http.sock"), lambda: seat_app(port, threads, chosen), loop, chosen
        )
        try:
            yield
        finally:
            listener.stop()
            loop.stop()
