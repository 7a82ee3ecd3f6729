"""Episodes in boxes, against bare loops at the same concurrency, and the start of the SDK."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import docker

from fumehood.core.errors import InfraError
from fumehood.core.task import Case
from fumehood.engines.engine import AGENT_FOLDER, AgentKind, AgentSource, Engine, Limits, Mount
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.images.sdk_folder import installed_sdk
from fumehood.engines.ownership import owner_labels
from fumehood.orchestrator.episode_runner import BoxPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from scripts.bench.measure import Figure, ratio, timed

EPISODES = 40
CONCURRENCY = 4
DOCKER_MIN, FORKED_PAIRS_MIN, SDK_MS_MAX = 0.95, 0.7, 42.0
ROUNDS = 4
STARTS = 20
WITHOUT_DAEMON_MIN, FORKED_MIN = 3.0, 2.5
AGENT = Path(__file__).with_name("three_calls.py")
CLIENT = "import fumehood_agent.__main__"
BARE_COMMANDS = {
    "the same interpreter and client": ["python3", "-c", CLIENT],
    "nothing (true)": ["/true"],
}


def episodes_in_boxes(engine: Engine, case: Case) -> Iterator[Figure]:
    """Yield the rate of episodes with three calls on docker, as ratios to the rates of bare
    containers of the same image. Episodes and containers take turns."""
    with ServicePool(1) as pool, ThreadPoolExecutor(CONCURRENCY) as threads:
        loops = {"": _three_calls(engine, case, pool, threads)}
        for what, command in BARE_COMMANDS.items():
            loops[what] = _bare_loop(command, threads)
        rates = _in_turns(loops)
    mine = rates.pop("")
    for what, bare in rates.items():
        title = (
            f"episodes with three calls on docker to bare containers that run {what}, "
            f"{CONCURRENCY} at once"
        )
        detail = f"({mine:.1f} against {bare:.1f} /s)"
        if CLIENT in BARE_COMMANDS[what]:
            yield ratio(title, mine, bare, DOCKER_MIN, at_least=True, detail=detail)
        else:
            yield Figure(title, f"{mine / bare:.2f}×  {detail}")


def forked_to_bare(engine: Engine, case: Case) -> Figure:
    """Return the rate of episodes with three calls on forked boxes, as a ratio to the rate of a
    loop of forked gRPC servers and forked clients in namespaces. Both take turns."""
    with (
        ServicePool(1) as pool,
        ThreadPoolExecutor(CONCURRENCY) as threads,
        subprocess.Popen(
            [sys.executable, "-m", "scripts.bench.forked_pairs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as pairs,
    ):
        rates = _in_turns(
            {
                "mine": _three_calls(engine, case, pool, threads),
                "bare": lambda count: _asked(pairs, count),
            }
        )
    mine, bare = rates["mine"], rates["bare"]
    return ratio(
        "episodes with three calls on forked bubblewrap to forked servers and clients that make "
        f"three calls, {CONCURRENCY} at once",
        mine,
        bare,
        FORKED_PAIRS_MIN,
        at_least=True,
        detail=f"({mine:.1f} against {bare:.1f} /s)",
    )


def start_of_sdk() -> Figure:
    """Return the processor time that the start of the SDK adds to that of this Python."""
    python = (Path(sys.base_prefix) / "bin" / "python3").resolve()
    times: dict[str, list[float]] = {"pass": [], CLIENT: []}
    for _ in range(STARTS):
        for code, used in times.items():
            # Without the module site: packages of the host may add files that it runs.
            command = [str(python), "-S", "-c", code]
            pid = os.posix_spawn(python, command, {"PYTHONPATH": str(installed_sdk())})
            _, status, usage = os.wait4(pid, 0)
            if status != 0:
                raise InfraError(f"{code!r} failed with status {status}")
            used.append((usage.ru_utime + usage.ru_stime) * 1000)
    bare_ms, sdk_ms = median(times["pass"]), median(times[CLIENT])
    added_ms = sdk_ms - bare_ms
    return Figure(
        "processor time that the start of the Python SDK adds to an interpreter",
        f"{added_ms:.0f} ms  (to {bare_ms:.0f} ms)",
        f"at most {SDK_MS_MAX:g} ms",
        added_ms <= SDK_MS_MAX,
    )


def compared_engines(engines: Mapping[str, Engine], goal: float, case: Case) -> Figure:
    """Return the ratio of the episodes per second of the second engine to those of the first.

    Each episode has three calls.

    The engines take turns, so that both have the same load of the machine.

    Args:
        engines: both, by the names to print.
        goal: the least ratio.
        case: the task.
    """
    with loops_of_three_calls(engines, case) as loops:
        rates = _in_turns(loops)
    (other, theirs), (name, mine) = rates.items()
    return ratio(
        f"episodes with three calls on {name} to those on {other}, {CONCURRENCY} at once",
        mine,
        theirs,
        goal,
        at_least=True,
        detail=f"({mine:.1f} against {theirs:.1f} /s)",
    )


@contextmanager
def loops_of_three_calls(
    engines: Mapping[str, Engine], case: Case
) -> Iterator[dict[str, Callable[[int], float]]]:
    """Yield for each engine a function that plays a number of episodes, each with three calls, and
    returns the episodes per second."""
    with ServicePool(1) as pool, ThreadPoolExecutor(CONCURRENCY) as threads:
        yield {name: _three_calls(each, case, pool, threads) for name, each in engines.items()}


def _in_turns(loops: Mapping[str, Callable[[int], float]]) -> dict[str, float]:
    """Return the mean rate of each loop; a loop gets a number of repetitions."""
    rates = dict.fromkeys(loops, 0.0)
    for loop in loops.values():
        loop(CONCURRENCY)
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            rates[name] += loop(EPISODES // ROUNDS) / ROUNDS
    return rates


def _three_calls(
    engine: Engine, case: Case, pool: ServicePool, threads: ThreadPoolExecutor
) -> Callable[[int], float]:
    """Return a function that plays a number of episodes and returns the episodes per second."""
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    shown = Mount(AGENT, f"{AGENT_FOLDER}/{AGENT.name}")
    path = f"{AGENT_FOLDER}:{image.environment.get('PYTHONPATH', '')}".rstrip(":")
    image = replace(
        image,
        command=(*image.command[:-1], f"{AGENT.stem}:ThreeCalls"),
        mounts=(*image.mounts, shown),
        environment=image.environment | {"PYTHONPATH": path},
    )
    plan = BoxPlan(engine=engine, image=image, limits=Limits(), labels=owner_labels("bench"))

    def episode(number: int) -> None:
        spec = PlannedEpisode(f"bench{number}", case, number, 0).to_spec(60_000)
        attempt = attempt_episode(spec, plan, pool)
        if attempt.infra is not None or (attempt.exit is not None and attempt.exit.code != 0):
            raise InfraError(f"the agent of the benchmark failed on {engine.name}")

    return lambda count: count / timed(lambda: list(threads.map(episode, range(count))))


def _asked(pairs: subprocess.Popen[str], count: int) -> float:
    assert pairs.stdin is not None
    assert pairs.stdout is not None
    print(count, file=pairs.stdin, flush=True)
    return float(pairs.stdout.readline())


def _bare_loop(command: list[str], threads: ThreadPoolExecutor) -> Callable[[int], float]:
    reference = build_agent_python(lambda _: None)
    client = docker.APIClient(version="auto")
    # The image has no tools, so the host's `true` is lent to it.
    settings = client.create_host_config(
        network_mode="none", binds=[f"{shutil.which('true')}:/true:ro"]
    )

    def container(_: int) -> None:
        made = client.create_container(reference, command, host_config=settings)
        client.start(made)
        ended = client.wait(made)
        client.remove_container(made, v=True)
        if ended["StatusCode"] != 0:
            raise InfraError(f"the bare container failed with status {ended['StatusCode']}")

    return lambda count: count / timed(lambda: list(threads.map(container, range(count))))
