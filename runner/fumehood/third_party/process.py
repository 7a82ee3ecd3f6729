"""The process in which code of somebody else works, a checker or a simulator, seen from here.

What it is asked holds what an agent wrote, and some of it evaluates that, so it may do nothing but
calculate. Every question is answered by a child of its own that starts from the same state.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from select import select
from threading import Lock

from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject

ANSWER_TIMEOUT_S = 60.0
"""More than a question may take there, so that the process itself says what went wrong."""
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 5.0
NO_ANSWER = "no_answer"
"""Code of a call that was made there, and that its process did not come through."""


class CheckerProcess:
    """One kind of checker. Safe to use from several threads, whose questions take turns."""

    def __init__(self, name: str) -> None:
        """Start the process.

        Args:
            name: in the table of ``fumehood.third_party.serve``.

        Raises:
            InputError: what it needs is not installed.
            InfraError: it does not start.
        """
        self._name = name
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(_ROOT), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
        )
        atexit.register(self.close)
        ready = self._read(START_TIMEOUT_S)
        if "missing" in ready:
            raise InputError(str(ready["missing"]))

    @property
    def process_id(self) -> int:
        """Of the process that forks."""
        return self._process.pid

    def ask(self, question: JsonObject) -> JsonObject:
        """Return what the checker says.

        Raises:
            InfraError: it cannot say, within its time and memory.
        """
        with self._lock:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(question).encode("ascii") + b"\n")
                self._process.stdin.flush()
            except OSError:
                raise InfraError(f"the checker {self._name} is gone") from None
            answer = self._read(ANSWER_TIMEOUT_S)
        if "failed" in answer:
            raise InfraError(f"the checker {self._name} failed: {answer['failed']}")
        return answer

    def close(self) -> None:
        """End the process."""
        self._kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)

    def _kill(self) -> None:
        # A service that root started is another user by now; then the end of its questions ends the process.
        with suppress(PermissionError):
            self._process.kill()

    def _read(self, timeout_s: float) -> JsonObject:
        stream = self._process.stdout
        assert stream is not None
        ready, _, _ = select([stream], [], [], timeout_s)
        line = stream.readline() if ready else b""
        if not line:
            self._kill()
            raise InfraError(f"the checker {self._name} does not answer")
        answer = json.loads(line)
        return answer if isinstance(answer, dict) else {}


@cache
def checker(name: str) -> CheckerProcess:
    """Return the process of a kind of checker, started at its first use."""
    return CheckerProcess(name)


_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from fumehood.third_party.serve import main; "
    "main(sys.argv[2])"
)
"""Isolated, so that neither the working directory nor a variable decides what is imported."""

_ROOT = Path(__file__).resolve().parents[2]
"""Where this very code was found: a checkout need not be installed."""
