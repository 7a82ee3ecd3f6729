"""Episodes in boxes, against a bare loop of containers at the same concurrency."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import docker

from fumehood.core.task import Case
from fumehood.engines.engine import AgentKind, AgentSource, Engine, Limits
from fumehood.engines.images.agent_python import build_agent_python
from fumehood.engines.ownership import owner_labels
from fumehood.orchestrator.episode_runner import BoxPlan, attempt_episode
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from scripts.bench.measure import Figure, ratio, timed

EPISODES = 40
CONCURRENCY = 4
EPISODES_MIN = 0.8
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
