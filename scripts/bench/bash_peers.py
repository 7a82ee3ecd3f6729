"""Runs inside a box of the same image: times a command of another kind when asked for it.

The argument is ``shell``, a pipe to bash, or ``swerex``, a session of SWE-ReX's server on loopback,
asked over one HTTP connection that stays open.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection

PORT, TOKEN = 8123, "bench"
START_TIMEOUT_S = 60.0


def _shell() -> Callable[[], object]:
    process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    commands, replies = process.stdin, process.stdout

    def call() -> None:
        commands.write(b"true; echo $?\n")
        assert replies.read(16) == b"0\n"

    return call


def _swerex() -> Callable[[], object]:
    server = (sys.executable, "-m", "swerex.server", "--host", "127.0.0.1", "--port", str(PORT))
    subprocess.Popen([*server, "--auth-token", TOKEN], stdout=sys.stderr)
    line = HTTPConnection("127.0.0.1", PORT)
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            line.connect()
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
    _post(line, "/create_session", {"session_type": "bash"})

    def call() -> None:
        action = {"action_type": "bash", "command": "true"}
        assert _post(line, "/run_in_session", action)["exit_code"] == 0

    return call


def _post(line: HTTPConnection, path: str, body: object) -> dict[str, object]:
    headers = {"content-type": "application/json", "x-api-key": TOKEN}
    line.request("POST", path, json.dumps(body), headers)
    answer = line.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    return json.loads(content)  # type: ignore[no-any-return]


def main() -> None:
    """Answer each line with a number of calls by their durations, milliseconds."""
    call = {"shell": _shell, "swerex": _swerex}[sys.argv[1]]()
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            started = time.perf_counter()
            call()
            times.append((time.perf_counter() - started) * 1000)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
