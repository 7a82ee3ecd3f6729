"""From a configuration to a finished run folder."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from runner.benchmarks.table import load_suite
from runner.core.canonical_names import file_name
from runner.core.errors import InputError
from runner.core.json_values import JsonObject
from runner.core.task import Suite
from runner.engines.engine import AgentKind, EngineOptions, Image, Limits, Mount
from runner.engines.ownership import owner_is_alive, owner_labels
from runner.engines.table import ChosenEngine, choose_engine
from runner.orchestrator.agents import NamedAgent, name_agents
from runner.orchestrator.attempt import BoxPlan
from runner.orchestrator.config import RunConfig, run_config
from runner.orchestrator.plan import PlannedEpisode, plan_episodes
from runner.orchestrator.run import Run, RunLimits, missing
from runner.orchestrator.service_pool import ServicePool
from runner.records.frozen_suite import freeze_suite
from runner.records.row import EpisodeRow
from runner.records.run_folder import RunFolder
from runner.version import __version__

CALLS_INSIDE = "/agent-data/calls.json"
"""Where the oracle agent finds its list of calls."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Told how a run is going, from one thread."""

    on_start: Callable[[Path, str, int, int], None]
    """Where it is written; which engine and why; episodes to run; episodes done before."""
    on_row: Callable[[EpisodeRow], None]
    on_wait: Callable[[str], None]
    """What takes long before the first episode, in one line."""


def start_run(config: RunConfig, out: Path, progress: Progress) -> RunFolder:
    """Run everything into a new folder.

    Raises:
        InputError: a suite, agent, engine or folder cannot be used; nothing was run.
        InfraError: the services do not come up.
    """
    suite = load_suite(config.suite)
    agents = name_agents(config.agents)
    chosen = _choose(config, progress.on_wait)
    images = _prepare(chosen, agents)
    folder = RunFolder.create(out, _manifest(config, suite, agents, images, chosen), suite)
    _execute(folder, config, suite, agents, images, chosen, progress)
    return folder


def resume_run(folder: RunFolder, progress: Progress) -> None:
    """Run what is missing in a folder; repeats nothing that is done.

    Raises:
        InputError: the folder, or an agent it names, cannot be used.
        InfraError: the services do not come up.
    """
    config = config_of(folder)
    agents = name_agents(config.agents)
    chosen = _choose(config, progress.on_wait)
    folder.drop_torn_row()
    images = _prepare(chosen, agents)
    _execute(folder, config, folder.suite(), agents, images, chosen, progress)


def config_of(folder: RunFolder) -> RunConfig:
    """Return the configuration a folder was made with.

    Raises:
        InputError: it holds none.
    """
    config = folder.manifest().get("config")
    if not isinstance(config, dict):
        raise InputError(f"{folder.path / 'run.json'} holds no configuration")
    return run_config(config)


def planned_of(folder: RunFolder) -> list[PlannedEpisode]:
    """Return every episode of a run folder, done or not, in the order of the plan."""
    config = config_of(folder)
    labels = [agent.label for agent in name_agents(config.agents)]
    return list(plan_episodes(folder.suite(), labels, config.trials, config.seed))


def _choose(config: RunConfig, on_wait: Callable[[str], None]) -> ChosenEngine:
    options = EngineOptions(runtime=config.runtime, trust=config.i_trust_this_agent, progress=on_wait)
    return choose_engine(config.engine, options)


def _prepare(chosen: ChosenEngine, agents: Sequence[NamedAgent]) -> dict[str, Image]:
    chosen.engine.reap(owner_is_alive)
    return {agent.label: chosen.engine.prepare(agent.source) for agent in agents}


def _execute(
    folder: RunFolder,
    config: RunConfig,
    suite: Suite,
    agents: Sequence[NamedAgent],
    images: dict[str, Image],
    chosen: ChosenEngine,
    progress: Progress,
) -> None:
    labels = [agent.label for agent in agents]
    planned = list(plan_episodes(suite, labels, config.trials, config.seed))
    to_run = missing(planned, folder.rows())
    progress.on_start(folder.path, chosen.reason, len(to_run), len(planned) - len(to_run))
    if not to_run:
        return
    oracles = {agent.label for agent in agents if _is_oracle(agent)}
    with ExitStack() as stack:
        scripts = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="")))
        scripts.chmod(0o755)
        pool = stack.enter_context(ServicePool(config.service_workers))
        run_labels = owner_labels(str(folder.manifest()["run"]))

        def box_plan(one: PlannedEpisode) -> BoxPlan:
            image, limits = images[one.agent], _limits(config)
            if one.agent not in oracles:
                return BoxPlan(image=image, limits=limits, labels=run_labels)
            script = Mount(_write_oracle(scripts, one), CALLS_INSIDE)
            arguments = ("--calls", CALLS_INSIDE)
            return BoxPlan(
                image=image, limits=limits, arguments=arguments, mounts=(script,), labels=run_labels
            )

        limits = RunLimits(concurrency=config.concurrency, wall_ms=round(config.wall_time_s * 1000))
        Run(folder, chosen.engine, pool, box_plan, limits).execute(to_run, progress.on_row)


def _is_oracle(agent: NamedAgent) -> bool:
    return agent.source.kind is AgentKind.BUILTIN and agent.source.name == "oracle"


def _write_oracle(folder: Path, one: PlannedEpisode) -> Path:
    oracle = one.case.gold.oracle
    if oracle is None:
        raise InputError(f"the task {one.case.task.task_id} has no oracle to replay")
    path = folder / f"{file_name(one.case.task.task_id)}.{one.trial}.json"
    path.write_text(json.dumps([dict(step) for step in oracle]), encoding="ascii")
    path.chmod(0o644)
    return path


def _limits(config: RunConfig) -> Limits:
    limits = config.limits
    return Limits(
        memory_bytes=limits.memory_mb << 20,
        cpus=limits.cpus,
        processes=limits.processes,
        tmp_bytes=limits.tmp_mb << 20,
        output_bytes=limits.output_kb << 10,
    )


def _manifest(
    config: RunConfig,
    suite: Suite,
    agents: Sequence[NamedAgent],
    images: dict[str, Image],
    chosen: ChosenEngine,
) -> JsonObject:
    settings: dict[str, Any] = config.model_dump(mode="json")
    return {
        "run": os.urandom(8).hex(),
        "suite": suite.name,
        "suite_digest": sha256(freeze_suite(suite).encode("ascii")).hexdigest(),
        "tasks": len(suite.cases),
        "config": settings,
        "engine": chosen.engine.name,
        "isolation": chosen.engine.isolation.value,
        "agents": [
            {
                "label": agent.label,
                "kind": agent.source.kind.value,
                "name": agent.source.name,
                "image": images[agent.label].reference,
                "digest": images[agent.label].digest,
            }
            for agent in agents
        ],
        "versions": {"glovebox": __version__, "python": platform.python_version()},
        "host": {"system": platform.system(), "kernel": platform.release(), "machine": platform.machine()},
    }
