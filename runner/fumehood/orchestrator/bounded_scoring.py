"""Scores attempts in confined processes with limits, so that no answer stops a run.

A process scores many attempts. If one exceeds its limits, the process is killed and replaced, and
that attempt fails: see :class:`fumehood.orchestrator.scoring.NotScored`.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import select
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any

from fumehood.core.errors import InfraError, InputError
from fumehood.core.outcome import Infra, InfraKind, outcome_from_json
from fumehood.core.score import UNGRADED, Score
from fumehood.core.task import Case
from fumehood.engines.ownership import process_stat
from fumehood.orchestrator.scoring import NotScored, PlayedAttempt, ScoredAttempt, fail_unread
from fumehood.orchestrator.scoring_process import (
    AnyRequest,
    CheckerReply,
    ControlRequest,
    FailRequest,
    requests_to_frame,
)
from fumehood.scorers.judges.question import Ask, Question, no_judge
from fumehood.supervised.fork_server import Child, ForkServer
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.limits import EndReason, Limits
from fumehood.third_party.process import checker

CPU_S_MAX = 30.0
"""Processor time for one attempt."""
STALLED_S = 300.0
"""If a process within its processor time does not answer for this long, it was stopped, or no
processor was free."""
TRIES = 3
"""Number of processes that may end for an external reason while they score one attempt."""
POLL_S = 0.5
TRANSFER_TIMEOUT_S = 60.0
LIMITS = Limits(memory_bytes=2 << 30, cpu_s=24 * 3600)
"""Limits of a process; it scores many attempts."""

_SCORE = "score"
_MODULE = "fumehood.orchestrator.scoring_process"


class _ExceededError(Exception):
    """A process cannot score an attempt."""

    def __init__(self, why: NotScored) -> None:
        super().__init__(why.value)
        self.why = why


class _LostError(Exception):
    """A process ended or stalled for an external reason."""


@dataclass(frozen=True, slots=True)
class ToScore:
    """An attempt to score."""

    request: PlayedAttempt
    ask: Ask
    """Asks the run's judge about criteria that no rule decides."""
    infra: Infra | None = None
    """Failure of the infrastructure, which is never scored; None if there was none."""


class ScoringProcesses:
    """Processes that score attempts. Safe to use from several threads."""

    def __init__(self, cpu_s_max: float = CPU_S_MAX, limits: Limits = LIMITS) -> None:
        """Start no process yet.

        Args:
            cpu_s_max: processor time for one attempt, seconds.
            limits: of one process.
        """
        self._cpu_s_max = cpu_s_max
        self._limits = limits
        self._lock = Lock()
        self._server: ForkServer | None = None
        self._idle: list[Child] = []

    def score(
        self, attempt: PlayedAttempt, infra: Infra | None = None, ask: Ask = no_judge
    ) -> ScoredAttempt:
        """Score one attempt, as :func:`fumehood.orchestrator.scoring.score_attempt` does.

        An attempt that cannot be scored within the limits is a failure, unless an episode without
        calls cannot be scored either.

        Args:
            attempt: what was played.
            infra: failure of the infrastructure; None if there was none.
            ask: asks the run's judge about criteria that no rule decides.

        Raises:
            InputError: the gold names no installed scorer, or a package of the scorer is missing.
        """
        return self.score_all([ToScore(attempt, ask, infra)])[0]

    def score_all(self, attempts: Sequence[ToScore]) -> list[ScoredAttempt]:
        """Score several attempts in one process, in order, as :meth:`score` does.

        If one of them exceeds the limits or breaks its scorer, each is scored by itself.

        Raises:
            InputError: the gold names no installed scorer, a package of a scorer is missing, or a
                trace cannot be read.
        """
        complete = [attempt for attempt in attempts if attempt.infra is None]
        together = iter(self._score_together(complete) or map(self._score_alone, complete))
        return [
            next(together)
            if attempt.infra is None
            else ScoredAttempt(attempt.infra, UNGRADED, "", 0)
            for attempt in attempts
        ]

    def _score_together(self, attempts: Sequence[ToScore]) -> list[ScoredAttempt]:
        """Return the scores of several attempts; none if they cannot be scored together."""
        if len(attempts) < 2:
            return []
        try:
            answers = self._exchange([each.request for each in attempts], attempts)
        except (_ExceededError, InfraError):
            return []
        if all("scored" in answer for answer in answers) and _is_sound(answers):
            return [_scored(answer["scored"]) for answer in answers]
        return []

    def _score_alone(self, attempt: ToScore) -> ScoredAttempt:
        try:
            return self._score(attempt)
        except InfraError as error:
            return ScoredAttempt(Infra(InfraKind.ORCHESTRATOR, str(error)), UNGRADED, "", 0)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            idle, self._idle = self._idle, []
            server, self._server = self._server, None
        for child in idle:
            child.channel.close()
        if server is not None:
            server.close()

    def _score(self, attempt: ToScore) -> ScoredAttempt:
        request = attempt.request
        try:
            (answer,) = self._exchange([request], [attempt])
        except _ExceededError as exceeded:
            return self._fail(request, exceeded.why)
        if "invalid" in answer:
            raise InputError(answer["invalid"])
        return _scored(answer["scored"])

    def _fail(self, request: PlayedAttempt, why: NotScored) -> ScoredAttempt:
        """Return the failure of an attempt that exceeds the limits. Reading its
        trace needs limits too: it can take 50 times the memory of its text."""
        control_fails = self._control_fails(request.case)
        try:
            (answer,) = self._exchange([FailRequest(request, why, control_fails)], [])
        except _ExceededError:
            return fail_unread(request, why, control_fails=control_fails)
        if "invalid" in answer:
            raise InputError(answer["invalid"])
        return _scored(answer["scored"])

    def _control_fails(self, case: Case) -> bool:
        try:
            (answer,) = self._exchange([ControlRequest(case)], [])
            return bool(answer["control_fails"])
        except _ExceededError:
            return True

    def _exchange(
        self, requests: Sequence[AnyRequest], attempts: Sequence[ToScore]
    ) -> list[dict[str, Any]]:
        for _ in range(TRIES):
            child = self._lease()
            try:
                answer = self._answer(child, requests, attempts)
            except _LostError as lost:
                _discard(child)
                reason = str(lost)
                continue
            except BaseException:
                _discard(child)
                raise
            answers: list[dict[str, Any]] | None = answer.get("answers")
            if answers is not None and _is_sound(answers):
                with self._lock:
                    self._idle.append(child)
            else:
                _discard(child)
            if answers is None:
                raise _ExceededError(NotScored.ERROR)
            return answers
        raise InfraError(f"the scoring process failed {TRIES} times: {reason}")

    def _answer(
        self, child: Child, requests: Sequence[AnyRequest], attempts: Sequence[ToScore]
    ) -> dict[str, Any]:
        """Send requests, answer the questions of the process, and return its answer."""
        _send(child, requests_to_frame(requests))
        watch = _CpuWatch(child.pid, self._cpu_s_max)
        while True:
            frame = self._receive(child, watch)
            message: dict[str, Any] = json.loads(frame)
            match message:
                case {"judge": dict(fields), "at": int(at)}:
                    _send(child, pickle.dumps(attempts[at].ask(_question(fields))))
                case {"checker": str(name), "question": dict(question)}:
                    _send(child, pickle.dumps(_check(name, question)))
                case _:
                    return message

    def _receive(self, child: Child, watch: _CpuWatch) -> bytes:
        """Return the next message of a process within its limits."""
        poll, waiting_since = select.poll(), monotonic()
        poll.register(child.channel, select.POLLIN)
        while not poll.poll(POLL_S * 1000):
            watch.look()
            if monotonic() - waiting_since > STALLED_S:
                raise _LostError(f"no answer within {STALLED_S:.0f} s")
        try:
            frame = receive_frame(child.channel)
        except OSError:
            frame = None
        if frame is None:
            raise _reason_of_end(child)
        return frame

    def _lease(self) -> Child:
        with self._lock:
            if self._server is None or not self._server.alive:
                self._idle.clear()
                self._server = ForkServer(
                    {_SCORE: f"{_MODULE}:score_attempts"},
                    modules=[_MODULE],
                    prepare=(f"{_MODULE}:prepare", {}),
                )
            if self._idle:
                return self._idle.pop()
            server = self._server
        child = server.start(_SCORE, {}, self._limits)
        child.channel.settimeout(TRANSFER_TIMEOUT_S)
        return child


@cache
def scoring_processes() -> ScoringProcesses:
    """Return the scoring processes of this process; they end with it."""
    processes = ScoringProcesses()
    atexit.register(processes.close)
    return processes


class _CpuWatch:
    """Bounds the processor time of a process, counted from the first :meth:`look`."""

    def __init__(self, pid: int, cpu_s_max: float) -> None:
        self._pid = pid
        self._cpu_s_max = cpu_s_max
        self._before_s: float | None = None

    def look(self) -> None:
        """Raise ``_ExceededError`` if the process has used more than its processor time."""
        used_s = _cpu_s(self._pid)
        if self._before_s is None:
            self._before_s = used_s
        elif used_s - self._before_s > self._cpu_s_max:
            raise _ExceededError(NotScored.CPU)


def _send(child: Child, message: bytes) -> None:
    # A process that has ended reads nothing; the reason follows.
    with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
        send_frame(child.channel, message)


def _is_sound(answers: Sequence[dict[str, Any]]) -> bool:
    """Return whether the process of these answers may score another attempt."""
    return not any(
        "not_scored" in answer["scored"]["metrics"] for answer in answers if "scored" in answer
    )


def _discard(child: Child) -> None:
    child.kill()
    child.channel.close()


def _reason_of_end(child: Child) -> Exception:
    end = child.wait(TRANSFER_TIMEOUT_S)
    if end is None or not end.is_own_fault:
        return _LostError(str(end or "it does not end"))
    why = {EndReason.MEMORY: NotScored.MEMORY, EndReason.CPU: NotScored.CPU}
    return _ExceededError(why.get(end.reason, NotScored.ERROR))


def _check(name: str, question: dict[str, Any]) -> CheckerReply:
    try:
        return checker(name).ask(question)
    except InfraError as error:
        return error
    except InputError as error:
        return InputError(str(error))


def _question(fields: dict[str, Any]) -> Question:
    return Question(**{**fields, "answers": tuple(fields["answers"])})


def _scored(fields: dict[str, Any]) -> ScoredAttempt:
    score = Score(fields["success"], fields["checks"], fields["metrics"])
    outcome = outcome_from_json(fields["outcome"])
    return ScoredAttempt(outcome, score, fields["trace_digest"], fields["refusals"])


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process, seconds. Source: proc(5), /proc/PID/stat."""
    return sum(map(int, process_stat(pid)[11:13])) / os.sysconf("SC_CLK_TCK")
