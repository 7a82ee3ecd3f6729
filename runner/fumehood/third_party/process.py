"""Starts and queries the process that runs a third-party checker or simulator.

Questions contain text from agents, and some checkers evaluate it. The process can therefore only
compute. Each question is answered in a forked child, so all questions start from the same state.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from threading import Lock
from typing import Protocol

from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject
from fumehood.third_party.serve import OF_CHILD

ANSWER_TIMEOUT_S = 150.0
"""Longer than the process's own limit of a question, so that the process can report the error."""
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 5.0
NO_ANSWER = "no_answer"
"""Error code of a call that ended its process without a reply."""


class QuestionFailed(InfraError):
    """The checker raised an exception on one question, or exceeded its limits."""


class CheckerProcess:
    """One checker's process. Threads may share it; their questions are serialised."""

    def __init__(self, name: str) -> None:
        """Start the process of a name in ``fumehood.third_party.serve.CHECKERS``.

        Raises:
            InputError: A required package is not installed.
            InfraError: The process does not start.
        """
        self._name = name
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(_ROOT), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
            # Ctrl-C in the terminal is for the process that asks.
            start_new_session=True,
        )
        self._is_late = False
        atexit.register(self.close)
        ready = self._read(START_TIMEOUT_S)
        if "missing" in ready:
            raise InputError(str(ready["missing"]))

    @property
    def process_id(self) -> int:
        """Process ID of the forking process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended or is stuck, so that it answers no more questions."""
        return self._is_late or self._process.poll() is not None

    def ask(self, question: JsonObject) -> JsonObject:
        """Return the checker's reply.

        Raises:
            QuestionFailed: The checker fails on this question, or exceeds its time or memory.
            InfraError: The process has ended or is stuck.
        """
        with self._lock:
            if self._is_late:  # Its reply would belong to an earlier question.
                raise InfraError(f"the checker {self._name} has ended")
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(question).encode("ascii") + b"\n")
                self._process.stdin.flush()
            except OSError:
                raise InfraError(f"the checker {self._name} has ended") from None
            answer = self._read(ANSWER_TIMEOUT_S)
        if "failed" in answer:
            raise QuestionFailed(f"the checker {self._name} failed: {answer['failed']}")
        if "stalled" in answer:
            raise InfraError(f"the checker {self._name} did not run: {answer['stalled']}")
        return answer

    def close(self) -> None:
        """Stop the process."""
        self._kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)

    def _kill(self) -> None:
        # A service started by root has changed its user and may not kill the process. Closing its
        # standard input ends it as well.
        with suppress(PermissionError):
            self._process.kill()

    def _read(self, timeout_s: float) -> JsonObject:
        stream = self._process.stdout
        assert stream is not None
        ready, _, _ = select([stream], [], [], timeout_s)
        line = stream.readline() if ready else b""
        if not line:
            self._is_late = True
            self.close()
            raise InfraError(f"the checker {self._name} does not reply within {timeout_s} s")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = {"failed": "its reply is not JSON"}
        if not isinstance(answer, dict):
            return {}
        if line.startswith(OF_CHILD) and "stalled" in answer:
            return {"failed": "its reply is not valid"}
        return answer


class Checker(Protocol):
    """Answers the questions of one third-party checker."""

    def ask(self, question: JsonObject) -> JsonObject:
        """Return the reply; see :meth:`CheckerProcess.ask`."""


Route = Callable[[str, JsonObject], JsonObject]
"""Sends a question to the checker of a name; raises the errors of :meth:`CheckerProcess.ask`."""

_routes: list[Route] = []


@dataclass(frozen=True, slots=True)
class _RoutedChecker:
    name: str

    def ask(self, question: JsonObject) -> JsonObject:
        return _routes[-1](self.name, question)


def route_questions(route: Route) -> None:
    """Send all questions of this process elsewhere: a confined process starts no checker."""
    _routes.append(route)


def checker(name: str) -> Checker:
    """Return a checker, whose process starts on first use."""
    return _RoutedChecker(name) if _routes else _checker_process(name)


_processes: dict[str, CheckerProcess] = {}
_starting = Lock()


def _checker_process(name: str) -> CheckerProcess:
    """Return the process of a checker; one that has ended is replaced."""
    with _starting:
        process = _processes.get(name)
        if process is None or process.has_ended:
            process = _processes[name] = CheckerProcess(name)
        return process


_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from fumehood.third_party.serve import main; "
    "main(sys.argv[2])"
)
"""Runs with ``-I``: neither the working directory nor environment variables affect imports."""

_ROOT = Path(__file__).resolve().parents[2]
"""Folder of the import package; a checkout need not be installed."""
