"""Episodes in boxes, against a bare loop of containers at the same concurrency."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import docker

from fumehood.core.errors import InfraError
from fumehood.core.task import Case
from fumehood.engines.engine import AGENT_FOLDER, AgentKind, AgentSource, Engine, Limits, Mount
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.ownership import owner_labels
from fumehood.orchestrator.episode_runner import BoxPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from scripts.bench.measure import Figure, ratio, timed

EPISODES = 40
CONCURRENCY = 4
EPISODES_MIN = 0.8
ROUNDS = 4
WITHOUT_DAEMON_MIN, FORKED_MIN = 3.0, 2.5
AGENT = Path(__file__).with_name("three_calls.py")
BARE_COMMANDS = {
    "the same interpreter and client": ["python3", "-c", "import grpc, fumehood.v1.tool_pb2_grpc"],
    "nothing (true)": ["/true"],
}


def episodes_in_boxes(engine: Engine, case: Case) -> Iterator[Figure]:
    """Yield how many episodes a second go in boxes, as a ratio to bare containers.

    The agent submits at once, so that boxes are what is measured.
    """
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    plan = BoxPlan(engine=engine, image=image, limits=Limits(), labels=owner_labels("bench"))
    with ServicePool(1) as pool, ThreadPoolExecutor(CONCURRENCY) as threads:

        def episode(number: int) -> None:
            spec = PlannedEpisode(f"bench{number}", case, number, 0).to_spec(60_000)
            attempt_episode(spec, plan, pool)

        list(threads.map(episode, range(CONCURRENCY)))
        mine = EPISODES / timed(lambda: list(threads.map(episode, range(EPISODES))))
    for what, command in BARE_COMMANDS.items():
        bare = _bare_loop(command)
        detail = f"({mine:.1f} against {bare:.1f} /s)"
        yield ratio(
            f"episodes to bare containers that run {what}, {CONCURRENCY} at once",
            mine,
            bare,
            EPISODES_MIN,
            at_least=True,
            detail=detail,
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
    rates = dict.fromkeys(engines, 0.0)
    with loops_of_three_calls(engines, case) as loops:
        for loop in loops.values():
            loop(CONCURRENCY)
        for _ in range(ROUNDS):
            for name, loop in loops.items():
                rates[name] += loop(EPISODES // ROUNDS) / ROUNDS
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


def _bare_loop(command: list[str]) -> float:
    reference = build_agent_python(lambda _: None)
    client = docker.APIClient(version="auto")
    # The image has no tools, so the host's `true` is lent to it.
    settings = client.create_host_config(
        network_mode="none", binds=[f"{shutil.which('true')}:/true:ro"]
    )

    def container(_: int) -> None:
        made = client.create_container(reference, command, host_config=settings)
        client.start(made)
        client.wait(made)
        client.remove_container(made, v=True)

    with ThreadPoolExecutor(CONCURRENCY) as threads:
        list(threads.map(container, range(CONCURRENCY)))
        return EPISODES / timed(lambda: list(threads.map(container, range(EPISODES))))
