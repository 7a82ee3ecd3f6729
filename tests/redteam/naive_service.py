"""A service without checks: no limits, no budget, no closed set of methods."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer
from threading import Thread
from typing import Any

import grpc

from fumehood_agent._proto.v1 import tool_pb2 as pb

PREFIX = "/fumehood.v1.ToolService/"
ANSWERS: dict[str, Any] = {
    f"{PREFIX}CallTool": pb.CallToolResponse(value_json='"done"'),
    f"{PREFIX}Submit": pb.SubmitResponse(accepted=True),
    f"{PREFIX}GetTask": pb.GetTaskResponse(),
}
"""Method → its constant answer; other methods return an empty message."""


class _Everything(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic only in its stub
    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        answer = ANSWERS[details.method].SerializeToString() if details.method in ANSWERS else b""
        if details.method == f"{PREFIX}Interact":
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, _: (b"" for _ in (*requests, 0))
            )
        return grpc.unary_unary_rpc_method_handler(lambda request, _: answer)


class _AcceptAll(BaseHTTPRequestHandler):
    """Answers every request with status 200."""

    def _accept(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.end_headers()

    do_GET = do_POST = do_CONNECT = _accept

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def naive_http(socket: str) -> Iterator[None]:
    """Serve HTTP on a socket."""
    with ThreadingUnixStreamServer(socket, _AcceptAll) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@contextmanager
def naive_service(socket: str) -> Iterator[None]:
    """Serve gRPC on a socket."""
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_metadata_size", 64 << 20)]
    server = grpc.server(ThreadPoolExecutor(16), options=options)
    server.add_generic_rpc_handlers((_Everything(),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()
