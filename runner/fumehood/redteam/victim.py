"""A victim: a client that calls a service over gRPC and HTTP, and measures how long calls take.

An attack beside it must not raise the latency of its calls too much.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any, Self

from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject
from fumehood_agent.errors import FumehoodError
from fumehood_agent.session import Session

ANSWER_TIMEOUT_S = 10.0
"""A call that takes longer counts as not served."""
INTERVAL_S = 0.02
"""Time between two calls whose latencies are compared."""
RARE_S = 0.5
"""Time between two calls that only show whether a service answers."""
PAUSE_S = 0.2
"""Time from an error to the next connection."""
_NICE_OF_BOX = 6
"""Has 272 of the 1024 shares of another process, about as many as a box. Source: sched(7)."""
PROTOCOLS = ("grpc", "http")
RISE_MAX = 3.0
"""Permitted ratio of the 99th percentiles."""
RISE_MAX_MS = 25.0
"""Permitted difference of the 99th percentiles, milliseconds; the larger of both limits applies."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Percentiles of the calls of one protocol, milliseconds."""

    p50_ms: float
    p99_ms: float
    calls: int


class Victim:
    """Calls a service from a separate process while it is open. A context manager.

    The process has the weight of a box, so that the work of this process does not delay its calls.
    """

    def __init__(self, socket_dir: Path, interval_s: float = INTERVAL_S) -> None:
        """Create the victim; the folder holds ``grpc.sock`` and ``http.sock``."""
        self._socket_dir = socket_dir
        self._interval_s = interval_s
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(self._socket_dir), str(self._interval_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def take_latencies(self) -> dict[str, Latencies]:
        """Return the latencies since the last call of this method, by protocol.

        A call that has not ended yet counts with the time that it has taken so far.

        Raises:
            InfraError: the process of the victim has ended.
        """
        return {name: _latencies(values) for name, values in self._take("calls_ms").items()}

    def take_errors(self) -> list[str]:
        """Return the errors since the last call of this method.

        Raises:
            InfraError: the process of the victim has ended.
        """
        errors: list[str] = self._take("errors")
        return errors

    def _take(self, what: str) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            print(what, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise InfraError("the process that measures a neighbour's calls has ended")
        return json.loads(answer)


class _Caller:
    """Calls a service from one thread for each protocol."""

    def __init__(self, socket_dir: Path, interval_s: float) -> None:
        self._socket_dir = socket_dir
        self._interval_s = interval_s
        self._lock = Condition()
        self._ended_calls = dict.fromkeys(PROTOCOLS, 0)
        self._called_early = {protocol: Event() for protocol in PROTOCOLS}
        self._calls_ms: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
        self._errors: list[str] = []
        self._began: dict[str, float] = {}
        for protocol in PROTOCOLS:
            Thread(target=self._repeat, args=(protocol,), daemon=True).start()

    def take_calls_ms(self) -> dict[str, list[float]]:
        """Return the time of each call since the last call of this method, by protocol."""
        now = time.monotonic()
        with self._lock:
            calls_ms = self._calls_ms
            self._calls_ms = {protocol: [] for protocol in PROTOCOLS}
            for protocol, began in self._began.items():
                calls_ms[protocol].append((now - began) * 1000)
        return calls_ms

    def take_errors(self) -> list[str]:
        """Call over each protocol, and return the errors since the last call of this method."""
        with self._lock:
            before = dict(self._ended_calls)
            for event in self._called_early.values():
                event.set()
            self._lock.wait_for(
                lambda: all(self._ended_calls[name] > before[name] for name in PROTOCOLS),
                2 * ANSWER_TIMEOUT_S,
            )
            errors, self._errors = self._errors, []
        return errors

    def _repeat(self, protocol: str) -> None:
        while True:
            try:
                if protocol == "http":
                    self._call_over_http()
                else:
                    self._call_over_grpc()
            except (FumehoodError, OSError) as error:
                self._fail(protocol, str(error))
                time.sleep(PAUSE_S)

    def _call_over_grpc(self) -> None:
        path = f"{self._socket_dir}/grpc.sock"
        timeout_ms = int(ANSWER_TIMEOUT_S * 1000)
        with Session(path, stream=False, service_timeout_ms=timeout_ms) as session:
            while True:
                self._wait("grpc")
                self._begin("grpc")
                session.call("list_dir", {"path": "/"})
                self._end("grpc")

    def _call_over_http(self) -> None:
        while True:
            self._wait("http")
            self._begin("http")
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2 * ANSWER_TIMEOUT_S)
                connection.connect(f"{self._socket_dir}/http.sock")
                connection.sendall(b"GET /task HTTP/1.1\r\nhost: box\r\nconnection: close\r\n\r\n")
                answer = connection.recv(64)
            if not answer.startswith(b"HTTP/1.1 200"):
                raise OSError(f"its HTTP socket answers {answer[:40]!r}")
            self._end("http")

    def _wait(self, protocol: str) -> None:
        self._called_early[protocol].wait(self._interval_s)
        self._called_early[protocol].clear()

    def _begin(self, protocol: str) -> None:
        with self._lock:
            self._began[protocol] = time.monotonic()

    def _end(self, protocol: str) -> None:
        now = time.monotonic()
        with self._lock:
            taken_s = now - self._began.pop(protocol)
            self._calls_ms[protocol].append(taken_s * 1000)
            if taken_s > ANSWER_TIMEOUT_S:
                self._errors.append(f"it waited {taken_s:.0f} s for an answer")
            self._count_ended(protocol)

    def _fail(self, protocol: str, reason: str) -> None:
        now = time.monotonic()
        with self._lock:
            self._errors.append(reason)
            if protocol in self._began:
                taken_ms = (now - self._began.pop(protocol)) * 1000
                self._calls_ms[protocol].append(taken_ms)
            self._count_ended(protocol)

    def _count_ended(self, protocol: str) -> None:
        self._ended_calls[protocol] += 1
        self._lock.notify_all()


def _have_weight_of_box() -> None:
    """Give this process the processor time of a box while the processors are busy."""
    with suppress(OSError):  # A container may forbid it; the kernel may not group sessions.
        os.setpriority(os.PRIO_PROCESS, 0, _NICE_OF_BOX)
        Path("/proc/self/autogroup").write_text(str(_NICE_OF_BOX), encoding="ascii")


def main(socket_dir: Path, interval_s: float) -> None:
    """Call a service; answer each line of standard input with a line of JSON."""
    _have_weight_of_box()
    caller = _Caller(socket_dir, interval_s)
    for line in sys.stdin:
        match line.strip():
            case "calls_ms":
                print(json.dumps(caller.take_calls_ms()), flush=True)
            case "errors":
                print(json.dumps(caller.take_errors()), flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of values for a share from 0 to 1; 0 for none."""
    if not values:
        return 0.0
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _latencies(values: Sequence[float]) -> Latencies:
    return Latencies(percentile(values, 0.5), percentile(values, 0.99), len(values))


def limit_ms(quiet: Latencies) -> float:
    """Return the highest permitted 99th percentile, for a quiet baseline."""
    return max(RISE_MAX * quiet.p99_ms, quiet.p99_ms + RISE_MAX_MS)


@dataclass(frozen=True, slots=True)
class Interference:
    """The latency of a neighbour's calls, quiet and attacked, by protocol."""

    quiet: Mapping[str, Latencies]
    attacked: Mapping[str, Latencies]

    def raised(self) -> Iterator[str]:
        """Yield each protocol whose 99th percentile exceeds its limit."""
        for protocol, latencies in self.attacked.items():
            baseline = self.quiet[protocol]
            if latencies.p99_ms > limit_ms(baseline):
                yield (
                    f"a neighbour's {protocol} calls took {latencies.p99_ms:.0f} ms (p99), and "
                    f"{baseline.p99_ms:.0f} ms without the attack; the limit is "
                    f"{limit_ms(baseline):.0f} ms"
                )

    def summary(self) -> str:
        """Return the percentiles in one line."""
        parts = (
            f"{protocol} {latencies.p50_ms:.1f}/{latencies.p99_ms:.1f} "
            f"(quiet {self.quiet[protocol].p50_ms:.1f}/{self.quiet[protocol].p99_ms:.1f})"
            for protocol, latencies in self.attacked.items()
        )
        return f"neighbour's calls, p50/p99 ms: {', '.join(parts)}"

    def to_json(self) -> JsonObject:
        """Return the percentiles and the limits, milliseconds, by protocol."""
        return {
            protocol: {
                "p50_ms": round(latencies.p50_ms, 2),
                "p99_ms": round(latencies.p99_ms, 2),
                "calls": latencies.calls,
                "quiet_p50_ms": round(self.quiet[protocol].p50_ms, 2),
                "quiet_p99_ms": round(self.quiet[protocol].p99_ms, 2),
                "limit_p99_ms": round(limit_ms(self.quiet[protocol]), 2),
            }
            for protocol, latencies in self.attacked.items()
        }


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
