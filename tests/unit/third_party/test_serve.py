"""A question to a checker runs alone, within its limits, and reaches nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from fumehood.core.errors import InfraError
from fumehood.supervised.fork_server import ANSWER_BYTES_MAX
from fumehood.supervised.system_calls import build_filter
from fumehood.third_party.process import (
    LIMITS,
    CheckerProcess,
    QuestionFailed,
    checker,
    checker_process,
    read_answer,
)
from tests.chaos.commands import children_of
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
TOOLS = """
import os, time

def double(state):
    return {"result": 2 * 2}

def wait(state):
    time.sleep(3600)

def spin(state):
    while True:
        pass

def _channel():
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        return number

def write_slowly(state):
    while True:
        os.write(_channel(), b"\\0")
        time.sleep(0.1)

def forge(state, reply, size=None):
    os.write(_channel(), (len(reply) if size is None else size).to_bytes(4, "big"))
    os.write(_channel(), reply.encode())
    os._exit(0)
"""
UNCONFINED = """
import json, sys
from fumehood.worlds.declared_checker import check
print(json.dumps(check(json.load(sys.stdin))))
"""


def test_a_question_is_answered(declared: CheckerProcess) -> None:
    assert declared.ask(_call(TOOLS, "double"))["output"] == {"result": 4}


@pytest.mark.slow
def test_an_exception_is_a_failed_question() -> None:
    pytest.importorskip("sqlglot")
    with pytest.raises(QuestionFailed, match="KeyError"):
        checker("dbbench").ask({})


@pytest.mark.slow
def test_a_question_that_an_outsider_stopped_did_not_run() -> None:
    with closing(_declared(deadline_s=10)) as process, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(process.ask, _call(TOOLS, "wait"))
        assert wait_until(lambda: bool(children_of(process.process_id)))
        os.kill(children_of(process.process_id)[0].pid, signal.SIGSTOP)
        with pytest.raises(InfraError, match="was stopped or got no processor") as caught:
            asked.result()
        assert not isinstance(caught.value, QuestionFailed)


@pytest.mark.parametrize(("tool", "deadline_s"), [("wait", 3), ("write_slowly", 3), ("spin", 120)])
def test_a_question_that_itself_does_not_end_has_failed(tool: str, deadline_s: float) -> None:
    # Otherwise an agent could lose an attempt with a call that waits.
    with closing(_declared(deadline_s)) as process, pytest.raises(QuestionFailed):
        process.ask(_call(TOOLS, tool))


def test_a_question_that_waits_delays_no_other_one() -> None:
    with closing(_declared(deadline_s=600)) as process, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(process.ask, _call(TOOLS, "wait"))
        assert wait_until(lambda: bool(children_of(process.process_id)))
        assert process.ask(_call(TOOLS, "double"))["output"] == {"result": 4}
        assert not waiting.done()
        process.close()
        with pytest.raises(InfraError):
            waiting.result()


def test_a_question_that_cannot_be_read_fails_and_the_next_one_is_answered(
    declared: CheckerProcess,
) -> None:
    reply = declared.ask_bytes(b"[" * 100_000, {})
    with pytest.raises(QuestionFailed, match="RecursionError"):
        read_answer("declared", reply)
    assert declared.ask(_call(TOOLS, "double"))["output"] == {"result": 4}


def test_a_checker_that_has_ended_is_replaced() -> None:
    pytest.importorskip("sqlglot")
    process = checker_process("dbbench")
    os.kill(process.process_id, signal.SIGKILL)
    assert wait_until(lambda: process.has_ended)
    with pytest.raises(InfraError, match="has ended"):
        process.ask({})
    other = checker_process("dbbench")
    assert other is not process
    with pytest.raises(QuestionFailed):
        other.ask({})


def _declared(deadline_s: float) -> CheckerProcess:
    return CheckerProcess("declared", limits=replace(LIMITS, cpu_s=2, deadline_s=deadline_s))


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
    unconfined = subprocess.run(
        [sys.executable, "-c", UNCONFINED],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=True,
    )
    could = json.loads(unconfined.stdout)["output"]
    assert all(could.values()), "the control without confinement"
    reply: Any = declared.ask(question)
    assert reply["output"].keys() == could.keys()
    assert not any(reply["output"].values())


@pytest.mark.parametrize("reply", ["not JSON", "[]", '{"stalled": ""}'])
def test_code_in_a_question_can_only_fail_it(declared: CheckerProcess, reply: str) -> None:
    call = _call(TOOLS, "forge")
    call["arguments"] = {"reply": reply}
    with pytest.raises(QuestionFailed, match="not valid"):
        declared.ask(call)


def test_code_in_a_question_can_send_no_reply_that_fills_the_memory(
    declared: CheckerProcess,
) -> None:
    call = _call(TOOLS, "forge")
    call["arguments"] = {"reply": "", "size": ANSWER_BYTES_MAX + 1}
    with pytest.raises(QuestionFailed):
        declared.ask(call)
