"""The process of a checker: imports it, drops privileges, and forks for each question."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from time import monotonic
from typing import Any

from fumehood.core.user_ids import CHECKER_UID
from fumehood.supervised.confinement import leave_network, python_paths
from fumehood.supervised.landlock import restrict_files
from fumehood.supervised.system_calls import build_filter, install_filter

CHECKERS = {
    "agentdojo": "fumehood.benchmarks.agentdojo.checker",
    "bfcl": "fumehood.benchmarks.bfcl.checker",
    "bfcl_embeddings": "fumehood.benchmarks.bfcl.embedding_checker",
    "dbbench": "fumehood.benchmarks.dbbench.translator",
    "declared": "fumehood.worlds.declared_checker",
    "safetybench": "fumehood.benchmarks.safetybench.checker",
    "tau2": "fumehood.benchmarks.tau2.checker",
    "taubench": "fumehood.benchmarks.taubench.checker",
    "toolsandbox": "fumehood.benchmarks.toolsandbox.checker",
}
"""Name → module with ``load()``, which imports all dependencies, and ``check(question)``.

An optional ``prepare(question)`` runs before the fork, so that later questions can use its
result. With an optional ``STARTS_THREADS``, ``check`` may start threads, but no processes, if the
filter of system calls is available."""

CPU_S_MAX = 20
"""Limit per question."""
WALL_S_MAX = 6 * CPU_S_MAX
STALLED_CPU_S_MAX = 2.0
"""A question that has run for less than this when its time is over was stopped, or other processes
ran, which is not the fault of the agent that caused it. Honest questions need less."""
MEMORY_BYTES_MAX = 2 << 30
REPLY_BYTES_MAX = 64 << 20
OF_CHILD = b" "
"""Begins the line of a reply that a child wrote. It cannot state that the child was stopped."""
OPEN_FILES_MAX = 64
_IMPORTED_LATE = ("_strptime", "encodings.idna", "encodings.unicode_escape", "traceback")
"""Modules that Python imports on first use, when this process can no longer read them."""
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38


def main(name: str) -> None:
    """Answer questions, one JSON object per line, until standard input ends."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # Output of a checker is not a reply.
    module = import_module(CHECKERS[name])
    try:
        module.load()
    except ImportError as error:
        replies.write(
            _line({"missing": f"{error.name or error} is not installed: {module.INSTALL}"})
        )
        return
    for imported in _IMPORTED_LATE:
        import_module(imported)
    reads_files = hasattr(module, "prepare")
    confine_child = _child_confinement(
        reads_files=reads_files, starts_threads=getattr(module, "STARTS_THREADS", False)
    )
    _confine(reads_files=reads_files)
    replies.write(_line({"ready": True}))
    for number, line in enumerate(sys.stdin.buffer):
        try:
            question = {**json.loads(line), "attempt": f"attempt{number}"}
            getattr(module, "prepare", _do_nothing)(question)
        except Exception as error:
            replies.write(_failed(error))
            continue
        replies.write(_run_in_child(module.check, question, confine_child))


def _run_in_child(
    check: Callable[[dict[str, Any]], dict[str, Any]],
    question: dict[str, Any],
    confine_child: Callable[[], None],
) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _reply(check, question, writing, confine_child)
    os.close(writing)
    reply, ended = _read_all(reading, WALL_S_MAX)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, _, usage = os.wait4(child, 0)
    line, line_end, _ = reply.partition(b"\n")
    if line_end:
        # Further lines, which hostile code could write, would answer later questions.
        return OF_CHILD + line + line_end
    if not ended and usage.ru_utime + usage.ru_stime < STALLED_CPU_S_MAX:
        return _line({"stalled": f"no reply within {WALL_S_MAX} s, within its processor time"})
    return _line({"failed": "it exceeded its time or memory limit"})


def _reply(
    check: Callable[[dict[str, Any]], dict[str, Any]],
    question: dict[str, Any],
    writing: int,
    confine_child: Callable[[], None],
) -> None:
    """Write the reply and end this process in every case."""
    try:
        confine_child()
        # Hostile code could read the questions of the parent process and write its replies.
        os.dup2(2, 0)
        os.closerange(3, writing)
        os.closerange(writing + 1, OPEN_FILES_MAX)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
        reply = _line(check(question))
    except BaseException as error:
        reply = _failed(error)
    try:
        with os.fdopen(writing, "wb") as stream:
            stream.write(reply)
    finally:
        os._exit(0)


def _read_all(stream: int, timeout_s: float) -> tuple[bytes, bool]:
    """Return what a child wrote, and whether it closed the stream in time."""
    parts: list[bytes] = []
    ended, left, deadline = False, REPLY_BYTES_MAX, monotonic() + timeout_s
    while not ended and left > 0:
        if not select.select([stream], [], [], max(0.0, deadline - monotonic()))[0]:
            break
        part = os.read(stream, 1 << 16)
        left -= len(part)
        parts.append(part)
        ended = not part
    os.close(stream)
    return b"".join(parts), ended


def _do_nothing(question: dict[str, Any]) -> None:
    """Prepare nothing."""


def _failed(error: BaseException) -> bytes:
    return _line({"failed": repr(error)[:1000]})


def _line(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply).encode("ascii") + b"\n"


def _child_confinement(*, reads_files: bool, starts_threads: bool) -> Callable[[], None]:
    """Return what each child does before it runs a check.

    Its parent and all other checkers have the same user. It must reach neither them nor the
    terminal nor a place where it could leave something for a later question.
    """
    libc, parent = ctypes.CDLL(None), os.getpid()
    program = build_filter(starts_programs=False, shares_user=True)
    null = os.open(os.devnull, os.O_RDWR)

    def confine_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        for stream in range(3):
            os.dup2(null, stream)
        # A checkout reads its data again.
        restrict_files(("/",) if reads_files else python_paths(), ())
        if not starts_threads or program is None:
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        if program is not None:
            install_filter(program)

    return confine_child


def _confine(*, reads_files: bool) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        # Removes the network if the kernel permits it.
        libc.unshare(_CLONE_NEWNET)
        os.setgroups([])
        os.setresgid(CHECKER_UID, CHECKER_UID, CHECKER_UID)
        os.setresuid(CHECKER_UID, CHECKER_UID, CHECKER_UID)
    else:
        leave_network()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # The children that answer questions cannot trace or change this process.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if not reads_files:
        restrict_files(python_paths(), ())
    for limit, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
        (resource.RLIMIT_NOFILE, OPEN_FILES_MAX),
    ):
        resource.setrlimit(limit, (amount, amount))
