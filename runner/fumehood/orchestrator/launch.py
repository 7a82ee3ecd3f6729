"""From a configuration to a finished run folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import structlog

from fumehood.benchmarks.table import load_suite
from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Suite
from fumehood.engines.engine import AgentKind, EngineOptions, Image, Isolation
from fumehood.engines.orphans import reap_local
from fumehood.engines.ownership import owner_is_alive, owner_labels
from fumehood.engines.records import owned_folder
from fumehood.engines.registry import INLINE, ChosenEngine, choose_engine
from fumehood.orchestrator.added_faults import with_faults
from fumehood.orchestrator.agents import NamedAgent, is_scaffold, name_agents
from fumehood.orchestrator.box_plans import BoxPlans
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.data_source import make_room_for_recording, settled, surroundings_of
from fumehood.orchestrator.episode_attempts import Attempts
from fumehood.orchestrator.model_run import ModelRun, check_models
from fumehood.orchestrator.participants import Cast
from fumehood.orchestrator.plan import PlannedEpisode, plan_episodes
from fumehood.orchestrator.prepare_resume import take_up
from fumehood.orchestrator.run import Run, RunLimits, missing
from fumehood.orchestrator.run_judge import RunJudge
from fumehood.orchestrator.second_sockets import http_offer
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.records.containment_cache import last_probe
from fumehood.records.frozen_suite import freeze_suite
from fumehood.records.only_one import only_one
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.signer import Signing
from fumehood.records.signing_key import user_key
from fumehood.version import __version__

_log = structlog.get_logger("fumehood.run")


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
    suite = with_faults(load_suite(config.suite, config.snapshot), config.faults)
    config = settled(config, suite)
    cast = Cast(config, suite)
    check_models(config, cast)
    # Made here only to be refused before anything is run, where it cannot be asked.
    RunJudge(config, out, live=True)
    chosen = _choose(config, cast, progress.on_wait)
    images = _prepare(chosen, cast)
    signing = _signing(config, suite, cast.agents)
    manifest = _manifest(config, suite, cast, images, chosen)
    # Locked before it is a run: of two commands with one --out, the second finds a run or a writer.
    with only_one(_made(out)):
        folder = RunFolder.create(out, manifest, suite, signing)
        _execute(folder, config, suite, cast, images, chosen, progress)
    return folder


def resume_run(folder: RunFolder, progress: Progress) -> None:
    """Run what is missing in a folder; repeats nothing that is done.

    Raises:
        InputError: the folder, or an agent it names, cannot be used, or the folder was changed.
        InfraError: the services do not come up.
    """
    config = config_of(folder)
    suite = folder.suite()
    cast = Cast(config, suite)
    chosen = _choose(config, cast, progress.on_wait)
    with only_one(folder.path):
        again = take_up(folder, _signing(config, suite, cast.agents))
        if again:
            _log.warning(
                "running again", episodes=again, why="their traces or output are torn or missing"
            )
        images = _prepare(chosen, cast)
        _execute(folder, config, suite, cast, images, chosen, progress)


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
    suite = folder.suite()
    around = surroundings_of(config, suite)
    return list(plan_episodes(suite, labels, config.trials, config.seed, around))


def _made(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{out} is a file: choose another --out") from None
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
    return out


def _signing(config: RunConfig, suite: Suite, agents: Sequence[NamedAgent]) -> Signing:
    labels = [agent.label for agent in agents]
    planned = plan_episodes(suite, labels, config.trials, config.seed)
    return Signing(user_key(), tuple(one.name for one in planned))


def _choose(config: RunConfig, cast: Cast, on_wait: Callable[[str], None]) -> ChosenEngine:
    with_model = [agent.label for agent in cast.everybody().values() if is_scaffold(agent)]
    if config.engine == INLINE and with_model:
        raise InputError(
            f"the inline engine plays no agent that asks a model, such as {with_model[0]!r}; "
            "use --engine docker or bubblewrap"
        )
    options = EngineOptions(
        runtime=config.runtime,
        trust=config.i_trust_this_agent,
        builtin_only=not with_model
        and all(agent.source.kind is AgentKind.BUILTIN for agent in cast.everybody().values()),
        progress=on_wait,
    )
    return choose_engine(config.engine, options)


def _prepare(chosen: ChosenEngine, cast: Cast) -> dict[str, Image]:
    reap_local(owner_is_alive)
    chosen.engine.reap(owner_is_alive)
    return {key: chosen.engine.prepare(agent.source) for key, agent in cast.everybody().items()}


def _execute(
    folder: RunFolder,
    config: RunConfig,
    suite: Suite,
    cast: Cast,
    images: dict[str, Image],
    chosen: ChosenEngine,
    progress: Progress,
) -> None:
    labels = [agent.label for agent in cast.agents]
    around = surroundings_of(config, suite)
    planned = list(plan_episodes(suite, labels, config.trials, config.seed, around))
    to_run = missing(planned, folder.finished_rows())
    progress.on_start(folder.path, chosen.reason, len(to_run), len(planned) - len(to_run))
    if not to_run:
        folder.seal()
        return
    models = ModelRun(config.models, folder.path, cast.models()) if config.models else None
    with ExitStack() as stack:
        run_labels = owner_labels(str(folder.manifest()["run"]))
        scripts = stack.enter_context(owned_folder(run_labels))
        scripts.chmod(0o755)
        pool = stack.enter_context(
            ServicePool(
                config.service_workers,
                http_offer(
                    cast.everybody().values(), models.settings if models else None, progress.on_wait
                ),
                run_labels,
                worlds=sorted({case.task.world for case in suite.cases}),
                limits=config.messages.changed(),
                inline=chosen.engine.isolation is Isolation.INLINE,
            )
        )
        make_room_for_recording(config, pool.owner_uid)

        boxes = BoxPlans(config, cast, images, chosen.engine, scripts, run_labels)
        limits = RunLimits(concurrency=config.concurrency, wall_ms=round(config.wall_time_s * 1000))
        attempts = Attempts(chosen.engine, pool, models)
        judge = RunJudge(config, folder.path, live=True)
        Run(folder, attempts, boxes.plan, limits, judge).execute(to_run, progress.on_row)
    folder.seal()


def _manifest(
    config: RunConfig,
    suite: Suite,
    cast: Cast,
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
        "containment": last_probe(chosen.engine.name, chosen.engine.check().detail),
        "agents": [
            {
                "label": agent.label,
                "kind": agent.source.kind.value,
                "name": agent.source.name,
                "image": images[cast.key(agent)].reference,
                "digest": images[cast.key(agent)].digest,
            }
            for agent in cast.agents
        ],
        "versions": {"fumehood": __version__, "python": platform.python_version()},
        "host": {
            "system": platform.system(),
            "kernel": platform.release(),
            "machine": platform.machine(),
        },
    }
