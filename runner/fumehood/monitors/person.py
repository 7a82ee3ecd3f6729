"""The service's side of a person who decides about steps; the orchestrator has the terminal."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Any

from fumehood.core.json_values import JsonObject
from fumehood.monitors.monitor import Step
from fumehood.supervised.frames import receive_frame, send_frame

POLL_S = 0.2
ANSWER_BYTES_MAX = 64 * 1024


class RemotePerson:
    """Asks a person about one step at a time. Safe to use from several threads."""

    def __init__(self, connection: socket.socket) -> None:
        """Ask over a connection to the orchestrator."""
        self._connection = connection
        self._numbers = count(1)
        self._lock = Lock()

    def ask(self, step: Step, timeout_s: float, is_closed: Callable[[], bool]) -> JsonObject:
        """Return a decision.

        Args:
            step: the question.
            timeout_s: for the answer, with the time for earlier questions.
            is_closed: whether the answer is not needed any more.

        Raises:
            TimeoutError: there was no answer in time, or it is not needed any more.
            OSError: the person has left.
        """
        deadline, number = time.monotonic() + timeout_s, next(self._numbers)
        question = json.dumps({"number": number, "step": step.to_json()}).encode("ascii")
        while not self._lock.acquire(timeout=POLL_S):
            _check_time(deadline, is_closed)
        try:
            send_frame(self._connection, question)
            while True:
                while not select.select([self._connection], [], [], POLL_S)[0]:
                    _check_time(deadline, is_closed)
                answer = receive_frame(self._connection, ANSWER_BYTES_MAX)
                asked: Any = json.loads(answer) if answer else {}
                if not asked.get("decision"):
                    raise OSError("the person has left")
                # An answer to an earlier question, which came too late.
                if asked["number"] == number:
                    decision: JsonObject = asked["decision"]
                    return decision
        finally:
            self._lock.release()


def _check_time(deadline: float, is_closed: Callable[[], bool]) -> None:
    if is_closed() or time.monotonic() > deadline:
        raise TimeoutError
