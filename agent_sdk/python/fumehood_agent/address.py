"""Where a seat's socket is, and how gRPC is told to reach it."""

from __future__ import annotations

import os

from fumehood_agent.errors import NotReachable

SOCKET_VARIABLE = "FUMEHOOD_SOCKET"
SOCKET_PATH = "/fumehood/grpc.sock"

POLL_S = 0.005
"""Between two looks for a socket that is not there yet."""

_PATH_BYTES_MAX = 107
"""What a Unix socket address holds."""

CHANNEL_OPTIONS = (
    # The other side bounds what it takes and what it sends; a limit here would only lose its words.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A socket that is there but does not answer yet will do so in a moment, not in gRPC's usual second.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 250),
    # A session is a connection of its own and inherits no other one's state.
    ("grpc.use_local_subchannel_pool", 1),
)


def socket_path(given: str | os.PathLike[str] | None) -> str:
    """Return the absolute path of the socket.

    Args:
        given: None means the environment's ``FUMEHOOD_SOCKET``, else ``/fumehood/grpc.sock``.
    """
    return os.path.abspath(given or os.environ.get(SOCKET_VARIABLE) or SOCKET_PATH)


def channel_target(path: str) -> str:
    """Return the path as gRPC wants it, quoted where a character would mean something else."""
    return "unix:" + path.replace("%", "%25").replace("#", "%23").replace("?", "%3F")


def require_short(path: str) -> None:
    """Make sure that a socket can be at this path.

    Raises:
        NotReachable: no address holds it.
    """
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise NotReachable(path, 0, f"longer than the {_PATH_BYTES_MAX} bytes of a socket address")
