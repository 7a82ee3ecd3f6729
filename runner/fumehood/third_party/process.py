"""Starts and queries the process that runs a third-party checker or simulator.

Questions contain text from agents, and some checkers evaluate it. The process can therefore only
compute. Each question is answered in a forked child, so all questions start from the same state.
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
"""Longer than the process's own limit of a question, so that the process can report the error."""
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 5.0
NO_ANSWER = "no_answer"
"""Error code of a call that ended its process without a reply."""


class CheckerProcess:
    """One checker's process. Threads may share it; their questions are serialised."""

    def __init__(self, name: str) -> None:
        """Start the process.

        Args:
            name: Key in ``fumehood.third_party.serve.CHECKERS``.

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
        )
        atexit.register(self.close)
        ready = self._read(START_TIMEOUT_S)
        if "missing" in ready:
            raise InputError(str(ready["missing"]))

    @property
    def process_id(self) -> int:
        """Process ID of the forking process."""
        return self._process.pid

    def ask(self, question: JsonObject) -> JsonObject:
        """Return the checker's reply.

        Raises:
            InfraError: The checker fails, or exceeds its time or memory.
        """
        with self._lock:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(question).encode("ascii") + b"\n")
                self._process.stdin.flush()
            except OSError:
                raise InfraError(f"the checker {self._name} has ended") from None
            answer = self._read(ANSWER_TIMEOUT_S)
        if "failed" in answer:
            raise InfraError(f"the checker {self._name} failed: {answer['failed']}")
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
            self._kill()
            raise InfraError(f"the checker {self._name} does not reply within {timeout_s} s")
        answer = json.loads(line)
        return answer if isinstance(answer, dict) else {}


@cache
def checker(name: str) -> CheckerProcess:
    """Return a checker's process, which starts on first use."""
    return CheckerProcess(name)


_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from fumehood.third_party.serve import main; "
    "main(sys.argv[2])"
)
"""Runs with ``-I``: neither the working directory nor environment variables affect imports."""

_ROOT = Path(__file__).resolve().parents[2]
"""Folder of the import package; a checkout need not be installed."""
