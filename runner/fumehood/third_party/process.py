"""Starts and queries the process that runs a third-party checker or simulator.

Questions contain text from agents, and some checkers evaluate it. Each question is therefore
answered in a forked process, which can only compute and starts from the same state as all others.
Questions do not wait for each other.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject
from fumehood.core.user_ids import CHECKER_UID
from fumehood.supervised.fork_server import ForkServer
from fumehood.supervised.limits import Access, End, Limits
from fumehood.supervised.system_calls import build_filter

CPU_S_MAX = 20
"""Limit per question."""
LIMITS = Limits(
    memory_bytes=2 << 30,
    cpu_s=CPU_S_MAX,
    deadline_s=6 * CPU_S_MAX,
    processes=0,
    open_files=64,
    file_bytes=0,
)
PLACES = ("checkout", "domain", "folder", "sha256", "split")
"""Fields of a question that name files of the user."""
WITH_PLACES = frozenset({"bfcl_embeddings", "tau2", "taubench", "toolsandbox"})
"""Checkers that read such files."""
WITH_THREADS = frozenset({"toolsandbox"})
"""Checkers whose questions may start threads, if the filter of system calls lets them start no
processes: the library polars, which the checkout uses, computes in a second thread."""
THREADS_MAX = 128
NO_ANSWER = "no_answer"
"""Error code of a call that ended its process without a reply."""
_MODULE = "fumehood.third_party.serve"


class QuestionFailed(InfraError):
    """The checker raised an exception on one question, or exceeded its limits."""


class CheckerProcess:
    """One checker's process. Threads may share it; their questions run at the same time."""

    def __init__(self, name: str, *, limits: Limits = LIMITS, wait: bool = True) -> None:
        """Start the process of a name in ``fumehood.third_party.serve.CHECKERS``.

        Args:
            name: of the checker.
            limits: of one question.
            wait: wait until the process has imported the checker; otherwise the caller calls
                ``wait_until_ready``.

        Raises:
            InputError: A required package is not installed.
            InfraError: The process does not start.
        """
        self._name = name
        may_start = name in WITH_THREADS and build_filter(starts_programs=False) is not None
        self._limits = replace(limits, processes=THREADS_MAX) if may_start else limits
        self._server = ForkServer(
            {"answer": f"{_MODULE}:answer"},
            prepare=(f"{_MODULE}:load", {"name": name}),
            before=f"{_MODULE}:prepare",
            shared_user=CHECKER_UID,
            wait=wait,
        )
        self.wait_until_ready = self._server.wait_until_ready
        atexit.register(self.close)

    @property
    def process_id(self) -> int:
        """Process ID of the forking process."""
        return self._server.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, so that it answers no more questions."""
        return not self._server.alive

    def ask(self, question: JsonObject) -> JsonObject:
        """Return the checker's reply.

        Raises:
            QuestionFailed: The checker fails on this question, or exceeds its time or memory.
            InfraError: The process has ended, or the question was stopped by an outsider.
        """
        places = {key: question[key] for key in PLACES if key in question}
        reply = self.ask_bytes(json.dumps(question).encode(), places)
        return read_answer(self._name, reply)

    def ask_bytes(self, question: bytes, places: JsonObject) -> bytes:
        """Return a reply that was not read: a JSON object with ``answer`` or ``failed``.

        Args:
            question: A JSON object, which was not read.
            places: Replace the fields of the question that name files.

        Raises:
            QuestionFailed: As for :meth:`ask`.
            InfraError: As for :meth:`ask`.
        """
        if self._name not in WITH_PLACES:
            places = {}
        named = (places.get(key) for key in ("checkout", "folder"))
        access = Access(readable=tuple(path for path in named if path and os.path.isabs(str(path))))  # type: ignore[misc]
        reply = self._server.ask_bytes("answer", question, self._limits, access, places)
        if not isinstance(reply, End):
            return reply
        if reply.is_own_fault:
            raise QuestionFailed(f"the checker {self._name} failed: the question {reply}")
        raise InfraError(f"the checker {self._name} did not run: the question {reply}")

    def close(self) -> None:
        """Stop the process."""
        atexit.unregister(self.close)
        self._server.close()


def read_answer(name: str, reply: bytes) -> JsonObject:
    """Return the answer in a reply of a checker.

    Raises:
        QuestionFailed: The checker failed, or its reply is not valid.
    """
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        fields = None
    match fields:
        case {"answer": dict(answer)}:
            return answer
        case {"failed": why}:
            raise QuestionFailed(f"the checker {name} failed: {why}")
    raise QuestionFailed(f"the checker {name} failed: its reply is not valid")


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


def are_routed() -> bool:
    """Return whether the questions of this process go elsewhere."""
    return bool(_routes)


def checker(name: str) -> Checker:
    """Return a checker, whose process starts on first use."""
    return _RoutedChecker(name) if _routes else checker_process(name)


_processes: dict[str, CheckerProcess] = {}
_starting = Lock()


def checker_process(name: str) -> CheckerProcess:
    """Return the process of a checker; one that has ended is replaced."""
    with _starting:
        process = _processes.get(name)
        if process is None or process.has_ended:
            process = _processes[name] = CheckerProcess(name)
        return process


def start_checkers(names: Iterable[str]) -> list[CheckerProcess]:
    """Start the processes of checkers, without a thread; ``wait_until_ready`` starts their threads.

    A process that drops its rights calls this first, because it may start none later.
    """
    started = {name: CheckerProcess(name, wait=False) for name in names if name not in _processes}
    _processes.update(started)
    return list(started.values())
