"""Runs tests in forks of one process that has imported the libraries, but nothing of the copy.

Importing them takes longer than most tests. Each line of standard input is a JSON object with
``tests``; the reply is a JSON object with ``status`` and ``last``, the last line that pytest wrote.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import tempfile
from contextlib import suppress
from importlib import import_module

from scripts.mutants.covering_tests import WITHOUT_ENGINES

CPU_LIMIT_S = 240
"""Processor time of the tests of one mutant; an endless loop exceeds it on any machine."""
TIME_LIMIT_S = 900.0
"""Time of the tests of one mutant that waits for ever; a busy machine must not reach it."""
LIBRARIES = """
    pytest hypothesis.strategies hypothesis.stateful grpc google.protobuf.json_format
    pydantic yaml structlog click.testing httpx2 tenacity jinja2 numpy scipy.stats pyarrow.parquet
    vl_convert starlette.applications starlette.testclient uvicorn mcp.server docker jsonschema
    cryptography.hazmat.primitives.serialization
    cryptography.hazmat.primitives.asymmetric.ed25519 bm25s lxml.html rich psutil
""".split()  # noqa: SIM905


def main() -> None:
    """Run tests until standard input ends."""
    # The import of a library may start threads, which a fork would not have.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        status, last = _run(json.loads(line)["tests"])
        print(json.dumps({"status": status, "last": last}), flush=True)


def _run(tests: list[str]) -> tuple[int, str]:
    """Return the exit status of pytest, negative for a signal, and the last line of its output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        child = os.fork()
        if child == 0:
            _test(tests, output.fileno())
        process = os.pidfd_open(child)
        ended, _, _ = select.select([process], [], [], TIME_LIMIT_S)
        os.close(process)
        if not ended:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        output.seek(0)
        lines = output.read().strip().splitlines()
    return os.waitstatus_to_exitcode(status), lines[-1] if lines else ""


def _test(tests: list[str], output: int) -> None:
    """Run the tests and end this process in every case."""
    status = 70
    try:
        os.setpgid(0, 0)
        for stream in (1, 2):
            os.dup2(output, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
        pytest = import_module("pytest")
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", WITHOUT_ENGINES]
        # The libraries that pytest would rewrite are imported already.
        quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        status = int(pytest.main([*options, *quiet, *tests]))
        sys.stdout.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
