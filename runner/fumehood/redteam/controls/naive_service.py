"""A service without checks: no limits, no budget, no closed set of methods.

It is a process, so that its memory and its descriptors can be measured, and so that an attack on it
harms nothing else: ``python -m fumehood.redteam.controls.naive_service FOLDER PROVIDER``.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from threading import Thread
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from fumehood_agent._proto.v1 import tool_pb2 as pb

THREADS = 4
"""Serve all calls of all clients."""
FOREIGN_CALLS = {"round_number", "multiply", "power", "mean"}
_PREFIX = "/fumehood.v1.ToolService/"
_ANSWERS: dict[str, Any] = {
    f"{_PREFIX}CallTool": pb.CallToolResponse(value_json="{}"),
    f"{_PREFIX}Submit": pb.SubmitResponse(accepted=True),
    f"{_PREFIX}GetTask": pb.GetTaskResponse(),
}
"""Method → its constant answer; other methods return an empty message."""


class _Everything(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic only in its stub
    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        answer = _ANSWERS[details.method].SerializeToString() if details.method in _ANSWERS else b""
        if details.method == f"{_PREFIX}Interact":
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, _: (b"" for _ in (*requests, 0))
            )

        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            _read_carelessly(request, context)
            return answer

        return grpc.unary_unary_rpc_method_handler(handle)


def _read_carelessly(request: bytes, context: grpc.ServicerContext) -> None:
    """Parse a request in this process, and show the whole error to its sender."""
    try:
        parsed = pb.CallToolRequest.FromString(request)
    except DecodeError:
        return
    try:
        arguments = json.loads(parsed.arguments_json or "{}")
    except (ValueError, RecursionError):
        # Metadata holds no line breaks.
        context.abort(grpc.StatusCode.INTERNAL, traceback.format_exc().replace("\n", " "))
    if parsed.tool_name in FOREIGN_CALLS:
        _call_foreign_code(parsed.tool_name, arguments)


def _call_foreign_code(name: str, arguments: dict[str, Any]) -> None:
    """Make a call of a world in this process, and end with it if it fails."""
    module = import_module("bfcl_eval.eval_checker.multi_turn_eval.func_source_code.math_api")
    try:
        str(getattr(module.MathAPI(), name)(**arguments))
    except Exception:
        os._exit(1)


class _AcceptAll(BaseHTTPRequestHandler):
    """Answers every request with status 200, after parsing its body; passes models' requests on."""

    protocol_version = "HTTP/1.1"
    provider = ""
    """Host and port of the provider of models."""

    def _accept(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with suppress(ValueError, RecursionError):
            json.loads(body)
        if self.path.startswith("/v1/") and self.provider:
            self._pass_on(body)
            return
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def _pass_on(self, body: bytes) -> None:
        provider = HTTPConnection(self.provider)
        provider.request(self.command, self.path, body, dict(self.headers.items()))
        answer = provider.getresponse()
        text = answer.read()
        self.send_response(answer.status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_CONNECT = _accept

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: attacks close connections early."""


def serve(folder: Path, provider: str) -> None:
    """Serve gRPC and HTTP in a folder until standard input closes; a provider is a host with a
    port."""
    _AcceptAll.provider = provider
    http = _Server(str(folder / "http.sock"), _AcceptAll)
    Thread(target=http.serve_forever, daemon=True).start()
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_metadata_size", 64 << 20),
    ]
    server = grpc.server(ThreadPoolExecutor(THREADS), options=options)
    server.add_generic_rpc_handlers((_Everything(),))
    server.add_insecure_port(f"unix:{folder}/grpc.sock")
    server.start()
    sys.stdin.read()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
