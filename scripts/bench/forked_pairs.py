"""A bare loop to compare forked boxes with.

A pair is a forked gRPC server, and a forked client that makes three calls. The client has separate
namespaces and a separate root. Each line of standard input is a number of pairs, and the answer is
the number of pairs per second. gRPC is imported before the fork, but not initialised. There are no
limits, no filter and no trace.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import grpc

from fumehood.engines.bubblewrap import kernel
from fumehood.engines.private_namespace import NO_SETUID, mount
from scripts.bench.measure import timed

AT_ONCE, CALLS = 4, 3
_SERVICE, _METHOD, _REQUEST = "bare", "call", b'{"id": "acct3"}'
_USER = 65534
_TOP_FOLDERS = ("usr", "lib", "lib64")
_READ_ONLY = 1
_IMPORTED = ("grpc._channel", "grpc._server", "grpc._simple_stubs", "grpc.experimental")
"""What gRPC imports when it is used first. A client cannot reach the files."""


def main() -> None:
    """Answer each line."""
    for module in _IMPORTED:
        import_module(module)
    gc.freeze()
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            passed_s = timed(partial(_loop, Path(folder), int(line)))
        print(int(line) / passed_s, flush=True)


def _loop(folder: Path, count: int) -> None:
    running, started = set[int](), 0
    while started < count or running:
        while started < count and len(running) < AT_ONCE:
            running.add(_forked(partial(_pair, folder / str(started))))
            started += 1
        pid, status = os.wait()
        running.remove(pid)
        if status != 0:
            raise RuntimeError(f"a pair failed with status {status}")


def _pair(folder: Path) -> None:
    """Start a server, then a client in namespaces; end the server when the client has ended."""
    folder.mkdir()
    ready, its_ready = os.pipe()
    server = _forked(lambda: _serve(folder / "socket", its_ready))
    os.read(ready, 1)
    kernel.unshare(
        kernel.NEW_MOUNTS
        | kernel.NEW_IPC
        | kernel.NEW_HOST_NAME
        | kernel.NEW_NETWORK
        | kernel.NEW_PIDS
    )
    client = _forked(lambda: _call(folder))
    _, status = os.waitpid(client, 0)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    if status != 0:
        os._exit(1)


def _serve(socket: Path, ready: int) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: echo}),)
    )
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    socket.chmod(0o777)
    os.write(ready, b"x")
    server.wait_for_termination()


def _call(folder: Path) -> None:
    mount("none", "/", "", kernel.RECURSIVE | kernel.PRIVATE)
    mount("tmpfs", "/mnt", "tmpfs", NO_SETUID, "size=16m")
    for name in _TOP_FOLDERS:
        os.mkdir(f"/mnt/{name}")
        kernel.bind(f"/{name}", f"/mnt/{name}", _READ_ONLY)
    for name in ("proc", "seat", "dev"):
        os.mkdir(f"/mnt/{name}")
    mount("proc", "/mnt/proc", "proc", NO_SETUID)
    kernel.bind("/dev", "/mnt/dev", _READ_ONLY)
    kernel.bind(str(folder), "/mnt/seat", _READ_ONLY)
    kernel.enter_root("/mnt")
    os.setgroups([])
    os.setresgid(_USER, _USER, _USER)
    os.setresuid(_USER, _USER, _USER)
    with grpc.insecure_channel("unix:/seat/socket") as channel:
        call = channel.unary_unary(f"/{_SERVICE}/{_METHOD}", bytes, bytes)
        for _ in range(CALLS):
            assert call(_REQUEST, timeout=30) == _REQUEST


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        _end_after(work)
    return pid


def _end_after(work: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
