"""The prepared process of bubblewrap: a Python with the SDK imported, from which boxes are forked.

It runs in a view like that of a box, without a network, secrets, and agent code. It has one thread.
It never reads a request: it forks the first process of a box, which reads it, so no box finds those
of others in its memory. That process makes the namespaces and the view of the box, waits until it
is in its control group, and forks the process of the agent, which gives up all rights before it
imports agent code::

    prepared process ──▶ first process (process 1 of the box) ──▶ agent's process

Source: namespaces(7), user_namespaces(7), pid_namespaces(7).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import resource
import runpy
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from fumehood.engines.bubblewrap import kernel
from fumehood.engines.bubblewrap.private_mounts import private_view
from fumehood.engines.bubblewrap.view_builder import ViewBuilder
from fumehood.engines.engine import BOX_UID, TIMERS_MAX, Limits
from fumehood.engines.private_namespace import NO_SETUID, mount
from fumehood.supervised.system_calls import install_filter

ROOT, PRIVATE = "/box", "/private"
"""Empty folders in the view of the prepared process, where boxes make their root and sources."""
FILTER_BYTES_MAX = 256 * 1024
_FILES = 5
"""Descriptors of one request: the request, status, standard output and error, and the gate."""
_FIRST_AGENT_FD, _DESCRIPTORS_MAX = 3, 1 << 16
_IMPORTED = (
    *("fumehood_agent.adapter", "fumehood_agent.builtin", "fumehood_agent.loading"),
    *("fumehood_agent.session", "argparse", "inspect", "traceback"),
)
"""Modules that nearly every agent process needs."""
_WARM_UP_TIMEOUT_S, _POLL_S = 10.0, 0.001
_FAILED = 1


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """What the agent's process runs."""

    command: Sequence[str]
    environment: dict[str, str]


def main(control_fd: int) -> None:
    """Fork boxes until the other end of the socket ``control_fd`` is closed."""
    control = socket.socket(fileno=control_fd)
    program = control.recv(FILTER_BYTES_MAX)[1:]  # After a byte, because no packet is empty.
    for module in _IMPORTED:
        import_module(module)
    _warm_up()
    problem = _problem()
    control.send((problem or "ready").encode())
    if problem:
        return
    # Listed once: a box that looks at the name of every module copies the pages of all names.
    own_modules = [name for name in sys.modules if name.partition(".")[0] == "fumehood"]
    gc.collect()
    gc.freeze()  # Otherwise a collection in a box would copy the pages of all objects.
    # The kernel then forgets ended boxes by itself; their descriptors still report the end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    agent = _serve(control, program)
    if agent is not None:
        _run(agent, own_modules)


def _warm_up() -> None:
    """Use gRPC once and shut it down, so that boxes start it faster.

    Boxes share the memory that gRPC initialises at its first use. :func:`_problem` reports threads
    that remain.
    """
    before = _threads()
    import_module("grpc").insecure_channel("unix:/none").close()
    gc.collect()
    deadline = time.monotonic() + _WARM_UP_TIMEOUT_S
    while _threads() != before and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _problem() -> str:
    """Return why this process must not fork boxes; empty if it may."""
    if _threads() != 1:
        return "the imported modules have started threads"
    mapped = Path("/proc/self/maps").read_text("utf-8").splitlines()
    if any("w" in line.split()[1] and "s" in line.split()[1] for line in mapped):
        return "the imported modules share memory that boxes could write"
    return ""


def _serve(control: socket.socket, program: bytes) -> AgentProcess | None:
    """Answer each request with a descriptor of the first process; return in an agent's process."""
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    while True:
        packet, files, _, _ = socket.recv_fds(control, 1, _FILES)
        if not packet:
            return None
        try:
            kernel.unshare(kernel.NEW_PIDS)
            pid = os.fork()
            if pid == 0:
                control.close()
                os.close(own_pids)
                return _first_process(files, program)
            handle = os.pidfd_open(pid)
            socket.send_fds(control, [b"forked"], [handle])
            os.close(handle)
        except OSError as error:
            control.send(str(error).encode())
        # Also after a failed fork: without this, no later one would succeed.
        kernel.enter(own_pids, kernel.NEW_PIDS)
        for file in files:
            os.close(file)


def _first_process(files: Sequence[int], program: bytes) -> AgentProcess:
    """Build the box, then wait for the agent's process; return only in that process."""
    request_fd, status_fd, *outputs, gate_fd = files
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    builder, problem = ViewBuilder(ROOT), ""
    try:
        with open(request_fd, encoding="utf-8") as file:
            request = json.load(file)
        _build(builder, request)
    except (OSError, ValueError) as error:
        problem = str(error)
    # Opened when this process is in the control group of the box.
    os.read(gate_fd, 1)
    if problem:
        _fail(status_fd, problem)
    with suppress(OSError):  # An older kernel has no namespaces for control groups.
        kernel.unshare(kernel.NEW_CGROUPS)
    _report(status_fd, {"built": True})
    agent_pid = os.fork()
    if agent_pid == 0:
        try:
            _confine(request, builder, outputs, program)
        except (OSError, ValueError) as error:
            _fail(status_fd, str(error))
        os.closerange(_FIRST_AGENT_FD, _DESCRIPTORS_MAX)
        return AgentProcess(request["command"], builder.environment)
    for descriptor in (0, 1, 2, *outputs, builder.settings_fd):
        os.close(descriptor)
    kernel.drop_capabilities()
    if program:
        install_filter(program)
    while True:
        ended, status = os.wait()
        if ended == agent_pid:
            code = os.waitstatus_to_exitcode(status)
            _report(status_fd, {"exit-code": code if code >= 0 else 128 - code})
            os._exit(0)


def _build(builder: ViewBuilder, request: dict[str, Any]) -> None:
    kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_IPC | kernel.NEW_HOST_NAME | kernel.NEW_NETWORK)
    mount("none", "/", "", kernel.RECURSIVE | kernel.PRIVATE)
    kernel.start_loopback()
    if request["shared"] is not None:
        mount("tmpfs", PRIVATE, "tmpfs", NO_SETUID, "mode=0700,size=16m")
        view = private_view(Path(PRIVATE), map(Path, request["shared"]))
        view.make(Limits(**request["limits"]))
    builder.build(request["view"])
    kernel.enter_root(ROOT)


def _confine(
    request: dict[str, Any], builder: ViewBuilder, outputs: Sequence[int], program: bytes
) -> None:
    """Give up every right that the agent must not have."""
    os.setsid()
    for stream, descriptor in enumerate((os.open("/dev/null", os.O_RDONLY), *outputs)):
        os.dup2(descriptor, stream)
    if request["user"] is not None:
        user = request["user"]
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    outside = os.getuid()
    for user in (outside, BOX_UID):
        kernel.own_proc_files()
        kernel.unshare(kernel.NEW_USERS)
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/self/{kind}").write_text(f"{BOX_UID} {user} 1", "ascii")
        if user == outside:
            # The second namespace is the last one that the box can have.
            maximum = os.open("user/max_user_namespaces", os.O_WRONLY, dir_fd=builder.settings_fd)
            os.write(maximum, b"1")
    kernel.drop_capabilities()
    kernel.own_proc_files()
    limits = Limits(**request["limits"])
    bounds = {
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_SIGPENDING: TIMERS_MAX,
        **({} if request["has_group"] else {resource.RLIMIT_DATA: limits.memory_bytes}),
    }
    for resource_kind, bound in bounds.items():
        resource.setrlimit(resource_kind, (bound, bound))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if program:
        install_filter(program)


def _fail(status_fd: int, problem: str) -> None:
    _report(status_fd, {"problem": problem})
    os._exit(_FAILED)


def _report(status_fd: int, fields: dict[str, Any]) -> None:
    os.write(status_fd, json.dumps(fields).encode() + b"\n")


def _run(agent: AgentProcess, own_modules: Sequence[str]) -> None:
    """Run the command ``python3 -m MODULE …`` or ``python3 -c CODE …`` in this process.

    Args:
        agent: its command.
        own_modules: modules of this project, which the agent does not find.
    """
    _, kind, what, *arguments = agent.command
    own_folders = {os.getcwd(), *os.environ["PYTHONPATH"].split(":")}
    standard = [folder for folder in sys.path if folder not in own_folders]
    os.environ.clear()
    os.environ.update(agent.environment)
    first = "" if kind == "-c" else os.getcwd()
    sys.path[:] = [first, *agent.environment.get("PYTHONPATH", "").split(":"), *standard]
    invalidate_caches()
    for name in own_modules:
        del sys.modules[name]
    _reseed()
    sys.orig_argv[:] = agent.command
    sys.argv[:] = [kind, *arguments]
    main_module = sys.modules["__main__"] = ModuleType("__main__")
    status = 0
    try:
        if kind == "-m":
            runpy._run_module_as_main(what)  # type: ignore[attr-defined]
        else:
            exec(compile(what, "<string>", "exec"), main_module.__dict__)
    except SystemExit as end:
        if isinstance(end.code, int):
            status = end.code & 0xFF
        elif end.code is not None:
            print(end.code, file=sys.stderr)
            status = 1
    except Exception as error:
        trace = error.__traceback__
        sys.excepthook(type(error), error, trace.tb_next if trace else None)
        status = 1
    _end(status)


def _end(status: int) -> NoReturn:
    """End as Python does, but do not clear each module first: this takes longer than the start."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError):  # The agent may have closed it.
            if stream is not None:
                stream.flush()
    os._exit(status)


def _reseed() -> None:
    """Give the random generators of this process new states; see random(7)."""
    random.seed()
    if ssl := sys.modules.get("ssl"):
        ssl.RAND_add(os.urandom(32), 32.0)
    if uuid := sys.modules.get("uuid"):
        uuid._last_timestamp = uuid._node = None  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(int(sys.argv[1]))
