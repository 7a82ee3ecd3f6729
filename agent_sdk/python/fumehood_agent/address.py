"""The path of the socket, and the gRPC options for it."""

from __future__ import annotations

import os

from fumehood_agent.errors import NotReachable

SOCKET_VARIABLE = "FUMEHOOD_SOCKET"
SOCKET_PATH = "/fumehood/grpc.sock"

POLL_S = 0.005
"""Interval of checks for a socket that does not exist yet."""

_PATH_BYTES_MAX = 107
"""Longest path in a Unix socket address."""

CHANNEL_OPTIONS = (
    # The service limits both directions; a limit here would only hide its messages.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A service that is starting answers within milliseconds; gRPC's default is one second.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 250),
    # Each session has a separate connection, without the state of another.
    ("grpc.use_local_subchannel_pool", 1),
)


def socket_path(given: str | os.PathLike[str] | None) -> str:
    """Return the absolute path of a socket, by default ``FUMEHOOD_SOCKET`` or the usual one."""
    return os.path.abspath(given or os.environ.get(SOCKET_VARIABLE) or SOCKET_PATH)


def channel_target(path: str) -> str:
    """Return the gRPC target of a path, with special characters escaped."""
    return "unix:" + path.replace("%", "%25").replace("#", "%23").replace("?", "%3F")


def require_short(path: str) -> None:
    """Check the length of the path.

    Raises:
        NotReachable: it is too long for a socket address.
    """
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise NotReachable(path, 0, f"longer than the {_PATH_BYTES_MAX} bytes of a socket address")
