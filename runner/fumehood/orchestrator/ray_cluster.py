"""Runs nodes on a Ray cluster. The only module that imports Ray, which is the extra ``ray``.

Each machine of a cluster has the resource ``fumehood: 1``, so it gets one node, in a separate
process. Ray transports arguments and results, which are bytes.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from fumehood.core.errors import InfraError, InputError, needs_extra
from fumehood.orchestrator.config import LOCAL, RAY
from fumehood.orchestrator.node import Node
from fumehood.wire.authentication import refuses_without_token

RESOURCE = "fumehood"
"""The resource of a machine that plays episodes."""
ANSWER_TIMEOUT_S = 20.0
CONNECT_ATTEMPTS = 3
"""Ray's proxy of clients sometimes fails to start the process of a client (Ray 2.60)."""
_STORE_BYTES = 200 * 1024 * 1024
"""Size of the object store of local nodes; an answer is stored until it is read."""
FIRST_CALL = "/ray.rpc.RayletDriver/ClusterInfo"
"""A method of Ray's client server that every client calls first (ray_client.proto)."""


class NodeActor(Node):
    """A node in a process that Ray started."""

    def __init__(self) -> None:
        # Ray blocks SIGINT, which boxes would inherit. In another group, this process gets no
        # Ctrl-C of the terminal.
        with suppress(OSError):
            os.setpgid(0, 0)
        super().__init__()

    def start(self, settings: bytes) -> bytes:
        """Start the node; see :meth:`Node.start`."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return super().start(settings)

    def play(self, request: bytes) -> bytes:
        """Play episodes; see :meth:`Node.play`."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return super().play(request)


class RayCluster:
    """Starts nodes on the machines of a cluster. Safe to use from several threads."""

    def __init__(self, ray: Any) -> None:
        """Create it.

        Args:
            ray: the module, connected to the cluster.

        Raises:
            InputError: no machine of the cluster plays episodes.
        """
        self._ray = ray
        self._class = ray.remote(NodeActor)
        self.size = self.space()
        """The number of nodes that the cluster had space for at first."""
        if not self.size:
            raise InputError(
                f"no machine of the cluster has the resource {RESOURCE}: start each with "
                f"ray start --resources='{{\"{RESOURCE}\": 1}}'"
            )

    def space(self) -> int:
        """Return how many nodes the cluster has space for now.

        Ray counts a machine for some time after the machine died.

        Raises:
            InfraError: the cluster does not answer.
        """
        alive = [node for node in _asked(self._ray.nodes) if node["Alive"]]
        return sum(int(node["Resources"].get(RESOURCE, 0)) for node in alive)

    def new_node(self, calls_at_once: int) -> Any:
        """Return a new :class:`~fumehood.orchestrator.node.Node` on a machine without one.

        It waits in the cluster while every machine has one.

        Args:
            calls_at_once: calls that the node answers at once.

        Raises:
            InfraError: the cluster does not answer.
        """
        options = self._class.options(
            resources={RESOURCE: 1},
            num_cpus=0,
            max_concurrency=calls_at_once,
            # A restarted actor would have no engine, and a call that is repeated would be played
            # twice.
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        return _asked(options.remote)

    def call(self, node: Any, method: str, *arguments: bytes) -> Future[Any]:
        """Call a method of a node; any exception of the result means that the node is lost.

        Raises:
            InfraError: the cluster does not answer.
        """
        result: Future[Any] = _asked(lambda: getattr(node, method).remote(*arguments).future())
        return result

    def kill(self, node: Any) -> None:
        """End a node at once; has no effect on a lost one."""
        with suppress(Exception):
            self._ray.kill(node)


@contextmanager
def ray_cluster(on: str, *, is_trusted: bool) -> Iterator[RayCluster]:
    """Connect to a cluster, or start one on this machine.

    Args:
        on: ``ray://HOST:PORT`` of the client server of a cluster, or ``local:N``.
        is_trusted: whether a cluster without token authentication is allowed.

    Raises:
        InputError: Ray is not installed, or the cluster cannot be used.
    """
    with needs_extra("ray"):
        if find_spec("ray") is None:
            raise ModuleNotFoundError("no module ray", name="ray")
    if on.startswith(RAY):
        needs_token = _needs_token(on.removeprefix(RAY))
        if not needs_token and not is_trusted:
            raise InputError(
                f"the cluster {on} has no token authentication, so everybody who reaches it can "
                "run code on its machines: start it with RAY_AUTH_MODE=token, or allow it with "
                "--i-trust-this-cluster"
            )
        variables = {"RAY_AUTH_MODE": "token"} if needs_token else {}
    else:
        variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # Ray reads them when it is imported.
    for name, value in {**variables, "RAY_USAGE_STATS_ENABLED": "0"}.items():
        os.environ.setdefault(name, value)
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    try:
        if on.startswith(RAY):
            _connect(lambda: ray.init(on, **quiet))
        else:
            number = int(on.removeprefix(LOCAL))
            ray.init(
                "local",
                num_cpus=number,
                resources={RESOURCE: number},
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                **quiet,
            )
    except Exception as error:
        reason = str(error).strip().rpartition("\n")[2]
        raise InputError(
            f"cannot use the cluster {on}: {reason}; it needs the same versions of Python and Ray "
            f"as here ({ray.__version__}), and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH for its token"
        ) from None
    try:
        yield RayCluster(ray)
    finally:
        ray.shutdown()


def _connect(connect: Callable[[], object]) -> None:
    for _ in range(CONNECT_ATTEMPTS - 1):
        with suppress(ConnectionAbortedError):
            connect()
            return
    connect()


def _needs_token(address: str) -> bool:
    """Return whether a client server refuses a call without a token.

    Raises:
        InputError: nothing answers there.
    """
    try:
        return refuses_without_token(address, FIRST_CALL, ANSWER_TIMEOUT_S)
    except InfraError:
        raise InputError(
            f"no Ray cluster answers at {RAY}{address}: name the host of `ray start --head` and "
            "the port of its client server, by default 10001"
        ) from None


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        raise InfraError(f"the cluster does not answer: {error}") from None
