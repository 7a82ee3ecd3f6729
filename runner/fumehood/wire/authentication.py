"""Asks a foreign gRPC server whether it refuses callers without a token."""

from __future__ import annotations

import grpc

from fumehood.core.errors import InfraError

_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def refuses_without_token(address: str, method: str, timeout_s: float) -> bool:
    """Return whether a server refuses a call without a token.

    Args:
        address: ``HOST:PORT``.
        method: of the call, such as ``/package.Service/Method``; it is sent no content.
        timeout_s: how long the server may take to answer, seconds.

    Raises:
        InfraError: no server answers there.
    """
    with grpc.insecure_channel(address) as channel:
        try:
            channel.unary_unary(method, bytes, bytes)(b"", timeout=timeout_s)
        except grpc.RpcError as error:
            code = error.code() if isinstance(error, grpc.Call) else None
            if code is None or code in _SILENT:
                raise InfraError(f"no server answers at {address}") from None
            return code is grpc.StatusCode.UNAUTHENTICATED
    return False
