"""The process itself: loads one checker, gives up what it does not need, forks for every question."""

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
from typing import Any

CHECKERS = {
    "agentdojo": "fumehood.benchmarks.agentdojo.checker",
    "bfcl": "fumehood.benchmarks.bfcl.checker",
    "dbbench": "fumehood.benchmarks.dbbench.translator",
    "safetybench": "fumehood.benchmarks.safetybench.checker",
    "tau2": "fumehood.benchmarks.tau2.checker",
    "taubench": "fumehood.benchmarks.taubench.checker",
}
"""Name → module with ``load()``, which imports what is needed, and ``check(question)``; where it has a
``prepare(question)``, that is done here, so that later questions find it done."""

CHECKER_UID = 65532
"""Neither the service's user nor that of boxes, so that nothing of theirs is in reach."""
CPU_SECONDS = 20
"""Of one question."""
MEMORY_BYTES = 2 << 30
_FOUND_LATE = ("_strptime", "encodings.idna", "encodings.unicode_escape", "traceback")
"""Parts of Python that are looked for at their first use, when this process may no longer read them."""
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38


def main(name: str) -> None:
    """Answer questions, one JSON object a line, until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # Whatever a checker prints is no answer.
    module = import_module(CHECKERS[name])
    try:
        module.load()
    except ImportError as error:
        answers.write(
            _line({"missing": f"{error.name or error} is not installed: {module.INSTALL}"})
        )
        return
    for late in _FOUND_LATE:
        import_module(late)
    _confine()
    answers.write(_line({"ready": True}))
    for number, line in enumerate(sys.stdin.buffer):
        question = {**json.loads(line), "attempt": f"attempt{number}"}
        try:
            getattr(module, "prepare", _nothing)(question)
        except Exception as error:
            answers.write(_failed(error))
            continue
        answers.write(_in_a_child(module.check, question))


def _in_a_child(
    check: Callable[[dict[str, Any]], dict[str, Any]], question: dict[str, Any]
) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer(check, question, writing)
    os.close(writing)
    said = _read_all(reading, 2 * CPU_SECONDS)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return (
        said if said.endswith(b"\n") else _line({"failed": "it took too long, or too much memory"})
    )


def _answer(
    check: Callable[[dict[str, Any]], dict[str, Any]], question: dict[str, Any], writing: int
) -> None:
    """Write the answer and end this process, whatever happens."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        said = _line(check(question))
    except BaseException as error:
        said = _failed(error)
    try:
        with os.fdopen(writing, "wb") as stream:
            stream.write(said)
    finally:
        os._exit(0)


def _read_all(stream: int, timeout_s: float) -> bytes:
    parts = []
    while select.select([stream], [], [], timeout_s)[0]:
        part = os.read(stream, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(stream)
    return b"".join(parts)


def _nothing(question: dict[str, Any]) -> None:
    """Have nothing to prepare."""


def _failed(error: BaseException) -> bytes:
    return _line({"failed": repr(error)[:1000]})


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode("ascii") + b"\n"


def _confine() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        libc.unshare(
            _CLONE_NEWNET
        )  # Without a network where the kernel lets us; it has none to speak of anyway.
        os.setgroups([])
        os.setresgid(CHECKER_UID, CHECKER_UID, CHECKER_UID)
        os.setresuid(CHECKER_UID, CHECKER_UID, CHECKER_UID)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for limit, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(limit, (amount, amount))
