"""A call of ``bash`` from the box of an agent in its workspace, against three peers in turn.

``python -m scripts.bench.workspaces`` measures only this. ``--changed FILES`` lets the workspace
contain files that differ from the image, which the helper examines after each call.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from threading import Event
from typing import IO

from fumehood.benchmarks.registry import load_suite
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InfraError
from fumehood.core.ledger import Budget
from fumehood.engines.engine import (
    AGENT_FOLDER,
    AgentKind,
    AgentSource,
    Box,
    BoxSpec,
    Engine,
    Limits,
    Mount,
)
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.episode_runner import BoxPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.orchestrator.workspaces.plans import Workspaces
from scripts.bench.measure import Figure, ratio, timed

TASK = f"harbor:{Path(__file__).parents[2]}/examples/workspaces:fix-the-average"
AGENT = Path(__file__).with_name("bash_agent.py")
PEERS = Path(__file__).with_name("bash_peers.py")
SWEREX = Path(os.environ.get("FUMEHOOD_ORIGINALS", ".originals")) / "venv-swerex"
PACKAGES = "lib/python3.11/site-packages"
TURNS_NAME = "turns.sock"
ROUNDS, CALLS_A_ROUND, SLOW_CALLS_A_ROUND = 20, 50, 5
OVER_SHELL_MAX_MS, EXEC_MIN, SWEREX_MIN = 3.0, 15, 20
START_TIMEOUT_S = 120.0
WALL_MS = 3_600_000
BASH, SHELL, EXEC, SESSION = "bash", "shell", "docker exec", "SWE-ReX's session"

Calls = Callable[[int], list[float]]
"""Makes a number of calls, and returns their durations, milliseconds."""


def bash_calls(engine: Engine, changed: int = 0) -> Iterator[Figure]:
    """Yield the ratios of a call of ``bash`` to its peers, all measured in turn.

    Args:
        engine: docker.
        changed: files in the workspace that differ from the image.
    """
    with _episode(engine, changed) as peers:
        numbers = {
            name: CALLS_A_ROUND if name in (BASH, SHELL) else SLOW_CALLS_A_ROUND for name in peers
        }
        for name, calls in peers.items():
            calls(numbers[name])
        times: dict[str, list[float]] = {name: [] for name in peers}
        for _ in range(ROUNDS):
            for name, calls in peers.items():
                times[name] += calls(numbers[name])
    mine_ms, shell_ms = median(times[BASH]), median(times[SHELL])
    load = f"load {os.getloadavg()[0]:.1f}"
    yield Figure(
        "bash call in a workspace above a pipe to bash in the same box, p50",
        f"{mine_ms - shell_ms:.2f} ms  ({mine_ms:.2f} against {shell_ms:.2f} ms, {load})",
        f"at most {OVER_SHELL_MAX_MS:g} ms",
        mine_ms - shell_ms <= OVER_SHELL_MAX_MS,
    )
    for peer, goal in ((EXEC, EXEC_MIN), (SESSION, SWEREX_MIN)):
        what = f"{peer} to bash call in a workspace, p50"
        if peer not in times:
            yield Figure(what, "left out: run scripts/setup-originals swerex")
            continue
        peer_ms = median(times[peer])
        detail = f"({peer_ms:.1f} against {mine_ms:.2f} ms, {load})"
        yield ratio(what, peer_ms, mine_ms, goal, at_least=True, detail=detail)


@contextmanager
def _episode(engine: Engine, changed: int) -> Iterator[dict[str, Calls]]:
    """Play an episode whose agent calls ``bash`` in turn with its peers, and yield all."""
    (case,) = load_suite(TASK).cases
    seat = SeatSpec(instruction="", budget=Budget(steps=10**9, calls=10**9))
    case = replace(case, task=replace(case.task, seats=(seat,)))
    labels = owner_labels("bench")
    with ExitStack() as stack:
        pool = stack.enter_context(ServicePool(1, ServiceOptions(worlds=[case.task.world])))
        workspace = Workspaces(engine, [case], lambda _: None).plan(case, labels, pool.owner_uid)
        assert workspace is not None
        code = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        code.chmod(0o755)
        (code / AGENT.name).write_bytes(AGENT.read_bytes())
        image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
        path = f"{AGENT_FOLDER}:{image.environment.get('PYTHONPATH', '')}".rstrip(":")
        image = replace(
            image,
            command=(*image.command[:-1], f"{AGENT.stem}:Probe"),
            mounts=(*image.mounts, Mount(code, AGENT_FOLDER)),
            environment=image.environment | {"PYTHONPATH": path},
        )
        turns = stack.enter_context(closing(_Turns(engine)))
        plan = BoxPlan(
            engine=turns, image=image, limits=Limits(), labels=labels, workspace=workspace
        )
        spec = PlannedEpisode("bench", case, 0, 0).to_spec(WALL_MS)
        threads = stack.enter_context(ThreadPoolExecutor(1))
        episode = threads.submit(attempt_episode, spec, plan, pool)
        try:
            bash = turns.accept()
            bash(1)
            reference = workspace.image.reference
            box = _container(labels, reference)
            if changed:
                write = (
                    f"cd /app; mkdir -p d; cd d; for n in $(seq {changed}); do echo $n >$n; done"
                )
                _docker("exec", box, "bash", "-c", write)
            program = ("python3", "-c", PEERS.read_text(encoding="utf-8"))
            peers = {BASH: bash, EXEC: lambda count: _exec_times(box, count)}
            peers[SHELL] = stack.enter_context(_peer("exec", "-i", box, *program, SHELL))
            if SWEREX.exists():
                shown = f"{(SWEREX / PACKAGES).absolute()}:/peer:ro"
                options = ("--rm", "--network", "none", "--cpus", f"{workspace.limits.cpus:g}")
                start = ("run", "-i", *options, "-v", shown, "-e", "PYTHONPATH=/peer", reference)
                peers[SESSION] = stack.enter_context(_peer(*start, *program, "swerex"))
            yield peers
        finally:
            turns.close()
            attempt = episode.result()
    if attempt.infra is not None:
        raise InfraError(attempt.infra.detail)


class _Turns:
    """Starts the box of an agent beside a socket, over which the agent is asked for calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(START_TIMEOUT_S)
        self._is_open = Event()
        self._stack = ExitStack()
        self._stack.callback(self._listener.close)

    def start(self, spec: BoxSpec) -> Box:
        """Listen in the folder of the seat: a box shows no other socket."""
        path = spec.socket_dir / TURNS_NAME
        self._listener.bind(str(path))
        path.chmod(0o666)
        self._listener.listen(1)
        self._is_open.set()
        return self._engine.start(spec)

    def accept(self) -> Calls:
        """Wait for the agent and return its calls."""
        self._is_open.wait(START_TIMEOUT_S)
        connection, _ = self._listener.accept()
        self._stack.callback(connection.close)
        lines = self._stack.enter_context(connection.makefile("rw"))
        return lambda count: _ask(lines, lines, count)

    def close(self) -> None:
        """End the work of the agent."""
        self._stack.close()


@contextmanager
def _peer(*words: str) -> Iterator[Calls]:
    """Start a program that is asked for calls over its standard input."""
    process = subprocess.Popen(
        ["docker", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, answers = process.stdin, process.stdout
        yield lambda count: _ask(given, answers, count)
        with suppress(OSError):
            given.close()


def _ask(given: IO[str], answers: IO[str], count: int) -> list[float]:
    given.write(f"{count}\n")
    given.flush()
    answer = answers.readline()
    if not answer:
        raise InfraError("a program of the benchmark ended early")
    return json.loads(answer)  # type: ignore[no-any-return]


def _exec_times(box: str, count: int) -> list[float]:
    return [timed(lambda: _docker("exec", box, "true")) * 1000 for _ in range(count)]


def _container(labels: dict[str, str], image: str) -> str:
    """Return the container of this process that was started from an image."""
    names = [f"--filter=label={name}={value}" for name, value in labels.items()]
    return _docker("ps", "-q", *names, f"--filter=ancestor={image}").strip()


def _docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], check=True, capture_output=True, text=True)
    return done.stdout


def main() -> None:
    """Measure, and print one line for each peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changed", type=int, default=0, metavar="FILES")
    changed = parser.parse_args().changed
    with closing(choose_engine("docker").engine) as engine:
        for figure in bash_calls(engine, changed):
            met = {True: "met", False: "missed", None: ""}[figure.met]
            print(f"{figure.what}: {figure.value}; goal: {figure.goal} {met}".rstrip())


if __name__ == "__main__":
    main()
