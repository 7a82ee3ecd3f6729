"""The time limit of a question tells a slow question from a stopped process."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from fumehood.core.errors import InfraError
from fumehood.third_party import serve
from fumehood.third_party.process import CheckerProcess, QuestionFailed, checker
from tests.parts.listening import wait_until


def reply_to(check: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(serve, "WALL_S_MAX", 3)
    monkeypatch.setattr(serve, "STALLED_CPU_S_MAX", 0.2)
    reply: dict[str, Any] = json.loads(serve._run_in_child(check, {}))
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
    assert "no reply within 3 s" in reply_to(stops, monkeypatch)["stalled"]


def test_a_question_that_ran_until_its_time_was_over_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Other boxes may keep the processors so busy that its limit of processor time is never reached.
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
