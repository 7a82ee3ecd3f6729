"""Latency of the HTTP and MCP interfaces and of the model gateway, against peers in one run."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from statistics import median

import grpc

from fumehood.core.task import Case
from fumehood.gateway.settings import GatewaySettings, Provider
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood_agent._proto.v1 import tool_pb2
from scripts.bench.measure import Figure, ratio

RATIO_MAX = 3.0
GATEWAY_MAX_MS = 5.0
ROUNDS, CALLS_A_ROUND, WARM_UP = 10, 50, 50
TIMEOUT_MS = 120_000
TOOL, ARGUMENTS = "get_account", {"id": "acct3"}
MODEL_PATH = "/v1/chat/completions"
QUESTION = {"model": "m1", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 10}
STREAM_PAUSE_S = 0.002

_Call = Callable[[], object]


def interface_latency(case: Case) -> Iterator[Figure]:
    """Yield the latency of HTTP and MCP calls against unary gRPC, and of the model gateway.

    The case is a task of the crud world whose budget admits the calls.
    """
    spec = PlannedEpisode("bench", case, 0, 0).to_spec(TIMEOUT_MS)
    with ExitStack() as stack:
        models = stack.enter_context(ScriptedModels(_reply))
        provider = Provider(name="scripted", address=models.address)
        offer = HttpOffer(None, GatewaySettings(providers=(provider,)))
        client = stack.enter_context(
            stack.enter_context(ServicePool(1, ServiceOptions(http=offer))).lease()
        )
        seats = client.open_seats(spec)
        folder = str(next(iter(seats.directories.values())))
        times = _time_in_turn(
            {
                "gRPC": _unary(folder),
                "HTTP": _connect(folder),
                "MCP": _mcp(folder),
                "model": _model(HTTPConnection(models.address.removeprefix("http://"))),
                "model through the gateway": _model(_UnixConnection(folder)),
                "word": _first_word(HTTPConnection(models.address.removeprefix("http://"))),
                "word through the gateway": _first_word(_UnixConnection(folder)),
            }
        )
        client.close_episode(spec.episode_id, timed_out=False)
        list(seats.messages)
    for interface in ("HTTP", "MCP"):
        detail = f"({times[interface]:.2f} against {times['gRPC']:.2f} ms)"
        yield ratio(
            f"call over {interface} to unary gRPC, p50",
            times[interface],
            times["gRPC"],
            RATIO_MAX,
            detail=detail,
        )
    goal = f"at most {GATEWAY_MAX_MS:g} ms"
    for what, name in (
        ("a model's answer", "model"),
        ("the first word of one that is streamed", "word"),
    ):
        added = times[f"{name} through the gateway"] - times[name]
        yield Figure(
            f"the gateway adds to {what}, p50", f"{added:.2f} ms", goal, added <= GATEWAY_MAX_MS
        )


def _time_in_turn(calls: dict[str, _Call]) -> dict[str, float]:
    """Return medians, milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            for _ in range(CALLS_A_ROUND):
                started = time.perf_counter()
                call()
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: median(each) for name, each in times.items()}


def _unary(folder: str) -> _Call:
    request = tool_pb2.CallToolRequest(tool_name=TOOL, arguments_json=json.dumps(ARGUMENTS))
    message = request.SerializeToString()
    call = grpc.insecure_channel(f"unix:{folder}/grpc.sock").unary_unary(
        "/fumehood.v1.ToolService/CallTool", None, None
    )
    return lambda: call(message)


def _connect(folder: str) -> _Call:
    line = _UnixConnection(folder)
    body = json.dumps({"toolName": TOOL, "argumentsJson": json.dumps(ARGUMENTS)})
    return lambda: _post(line, "/fumehood.v1.ToolService/CallTool", body, {})


def _mcp(folder: str) -> _Call:
    line = _UnixConnection(folder)
    headers = {"accept": "application/json, text/event-stream"}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "b", "version": "0"},
    }
    headers["mcp-session-id"] = _post(line, "/mcp", _rpc("initialize", hello), headers)
    body = _rpc("tools/call", {"name": TOOL, "arguments": ARGUMENTS})
    return lambda: _post(line, "/mcp", body, headers)


def _reply(request: AskedOfModel) -> ScriptedReply:
    """Answer at once, or word by word if the request asks for a stream."""
    return ScriptedReply(
        text="so it is", pause_s=STREAM_PAUSE_S if request.request.get("stream") else 0
    )


def _model(line: HTTPConnection) -> _Call:
    body = json.dumps(QUESTION)
    return lambda: _post(line, MODEL_PATH, body, {})


def _first_word(line: HTTPConnection) -> _Call:
    body = json.dumps({**QUESTION, "stream": True})

    def call() -> None:
        # Hanging up after the first word costs both sides of the comparison the same.
        line.close()
        line.request("POST", MODEL_PATH, body, {"content-type": "application/json"})
        assert line.getresponse().readline().startswith(b"data:")

    return call


def _rpc(method: str, params: Mapping[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _post(line: HTTPConnection, path: str, body: str, headers: dict[str, str]) -> str:
    line.request("POST", path, body, {"content-type": "application/json", **headers})
    answer = line.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    return answer.getheader("mcp-session-id", "")


class _UnixConnection(HTTPConnection):
    def __init__(self, folder: str) -> None:
        super().__init__("localhost")
        self._path = f"{folder}/http.sock"

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)
