"""A bare gRPC server for comparison: it answers with as many bytes as were requested."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc


class _Echo(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # Generic in the stubs alone.
    """Does nothing but gRPC: no parsing, no state, no trace."""

    def __init__(self) -> None:
        self._answer = b""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        match handler_call_details.method:
            case "/echo/SetSize":
                return grpc.unary_unary_rpc_method_handler(self._set_size)
            case "/echo/Unary":
                return grpc.unary_unary_rpc_method_handler(lambda _request, _context: self._answer)
            case "/echo/Stream":
                return grpc.stream_stream_rpc_method_handler(self._stream)
        return None

    def _set_size(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        self._answer = b"x" * int.from_bytes(request, "big")
        return b""

    def _stream(self, requests: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
        for _ in requests:
            yield self._answer


def main() -> None:
    """Serve on the socket named by the only argument until standard input ends."""
    server = grpc.server(ThreadPoolExecutor(16), handlers=[_Echo()])
    server.add_insecure_port(f"unix:{sys.argv[1]}")
    server.start()
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
