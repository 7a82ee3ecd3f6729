"""The time limit of a question tells a slow question from a stopped process."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fumehood.core.errors import InfraError
from fumehood.supervised.system_calls import build_filter
from fumehood.third_party import process as process_module
from fumehood.third_party import serve
from fumehood.third_party.process import CheckerProcess, QuestionFailed, checker
from fumehood.worlds import declared_checker
from tests.parts.listening import wait_until

DISTURB = """
import ctypes, os, resource

def can(action):
    try:
        return action() != -1
    except OSError:
        return False

def disturb(state):
    libc, parent = ctypes.CDLL(None), os.getppid()
    priority = os.getpriority(os.PRIO_PROCESS, parent)
    memory = libc.shmget(0, 4096, 0o600)
    libc.shmctl(memory, 0, None)
    return {
        "signals its parent": can(lambda: os.kill(parent, 0)),
        "limits its parent": can(lambda: resource.prlimit(parent, resource.RLIMIT_CORE)),
        "slows its parent": can(lambda: os.setpriority(os.PRIO_PROCESS, parent, priority)),
        "leaves memory": memory != -1,
        "uses sockets": libc.socket(1, 1, 0) != -1,
    }
"""
WRITE = """
import os, time

def pipe():
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        return number

def stall(state):
    os.write(pipe(), b'{"stalled": ""}\\n')
    os._exit(0)

def wait(state):
    time.sleep(3600)
"""


def reply_to(check: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(serve, "WALL_S_MAX", 3)
    reply: dict[str, Any] = json.loads(serve._run_in_child(check, {}, lambda: None))
    return reply


def answers(question: dict[str, Any]) -> dict[str, Any]:
    return {"valid": True}


def raises(question: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("no such key")


def stops(question: dict[str, Any]) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}


def spins(question: dict[str, Any]) -> dict[str, Any]:
    while True:
        pass


def test_a_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reply_to(answers, monkeypatch) == {"valid": True}


def test_an_exception_is_a_failed_question(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reply_to(raises, monkeypatch) == {"failed": "KeyError('no such key')"}


def test_a_question_that_was_stopped_did_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "STALLED_CPU_S_MAX", 0.2)
    assert "no reply within 3 s" in reply_to(stops, monkeypatch)["stalled"]


def test_a_question_that_ran_until_its_time_was_over_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Other boxes may keep the processors so busy that its limit of processor time is never reached.
    monkeypatch.setattr(serve, "STALLED_CPU_S_MAX", 0.0)
    assert reply_to(spins, monkeypatch) == {"failed": "it exceeded its time or memory limit"}


def test_a_question_that_cannot_be_read_fails_and_the_next_one_is_answered() -> None:
    pytest.importorskip("sqlglot")
    process = checker("dbbench")
    assert isinstance(process, CheckerProcess)
    assert process._process.stdin is not None
    process._process.stdin.write(b"[" * 100_000 + b"\n")
    with pytest.raises(QuestionFailed, match="failed"):
        process.ask({})
    with pytest.raises(QuestionFailed):
        process.ask({})
    assert not process.has_ended


def test_a_checker_that_has_ended_is_replaced() -> None:
    pytest.importorskip("sqlglot")
    process = checker("dbbench")
    assert isinstance(process, CheckerProcess)
    os.kill(process.process_id, signal.SIGKILL)
    assert wait_until(lambda: process.has_ended)
    with pytest.raises(InfraError, match=r"has ended|does not reply"):
        process.ask({})
    other = checker("dbbench")
    assert other is not process
    with pytest.raises(QuestionFailed):
        other.ask({})


def _call(source: str, tool: str) -> dict[str, Any]:
    return {"source": source, "tool": tool, "arguments": {}, "state": {}}


@pytest.fixture
def declared() -> Iterator[CheckerProcess]:
    process = CheckerProcess("declared")
    yield process
    process.close()


@pytest.mark.skipif(
    build_filter(starts_programs=False) is None, reason="libseccomp is not installed"
)
def test_a_question_reaches_neither_its_checker_nor_later_questions(
    declared: CheckerProcess,
) -> None:
    question = _call(DISTURB, "disturb")
    unconfined = json.loads(serve._run_in_child(declared_checker.check, question, lambda: None))
    assert all(unconfined["output"].values()), "the control without confinement"
    reply: Any = declared.ask(question)
    assert reply["output"].keys() == unconfined["output"].keys()
    assert not any(reply["output"].values())


def test_a_question_that_writes_slowly_is_stopped_at_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def writes_slowly(question: dict[str, Any]) -> dict[str, Any]:
        pipe = next(number for number in range(3, 1024) if _is_writable_pipe(number))
        while True:
            os.write(pipe, b" ")
            time.sleep(0.1)

    assert reply_to(writes_slowly, monkeypatch).keys() <= {"stalled", "failed"}


def _is_writable_pipe(number: int) -> bool:
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(number).st_mode)
        return is_pipe and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    except OSError:
        return False


def test_a_question_cannot_state_that_it_was_stopped(declared: CheckerProcess) -> None:
    with pytest.raises(QuestionFailed, match="not valid"):
        declared.ask(_call(WRITE, "stall"))


def test_a_checker_that_replies_too_late_is_not_asked_again(
    declared: CheckerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "ANSWER_TIMEOUT_S", 0.5)
    with pytest.raises(InfraError, match="does not reply"):
        declared.ask(_call(WRITE, "wait"))
    assert declared.has_ended
    group = declared.process_id
    assert wait_until(lambda: not _has_processes(group)), "the question ends with its checker"
    with pytest.raises(InfraError, match="has ended"):
        declared.ask(_call(WRITE, "wait"))


def _has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
