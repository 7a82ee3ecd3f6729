"""The plan of a run that exists: its configuration, its instructions and its episodes.

Commands that read runs import this module. Importing :mod:`fumehood.orchestrator.setup`, with
engines and gateways, takes longer than reading hundreds of episodes.
"""

from __future__ import annotations

from collections.abc import Iterable

from fumehood.core.errors import InputError
from fumehood.core.task import Suite
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.data_source import data_source_of
from fumehood.orchestrator.instructions import Instructions
from fumehood.orchestrator.monitors import monitor_names
from fumehood.orchestrator.plan import PlannedEpisode, plan_episodes
from fumehood.orchestrator.shards import Shard
from fumehood.records.run_reader import RunReader


def config_of(run: RunReader) -> RunConfig:
    """Return the configuration of a run.

    Raises:
        InputError: the run has no valid configuration.
    """
    config = run.manifest().get("config")
    if not isinstance(config, dict):
        raise InputError(f"{run.path / 'run.json'}: config: must be an object")
    return run_config(config)


def planned_of(run: RunReader, *, of_all_shards: bool = False) -> tuple[PlannedEpisode, ...]:
    """Return every episode of a run, finished or not, in the order of the plan.

    Args:
        run: the run.
        of_all_shards: whether a shard gives the episodes of the other shards, too.
    """
    config = config_of(run)
    if of_all_shards:
        config = config.model_copy(update={"shard": None})
    labels = [agent.label for agent in name_agents(config.agents)]
    return episodes_of(config, run.suite(), labels)


def instructions_of(config: RunConfig) -> Instructions:
    """Return how the instructions of a run differ from those of its tasks."""
    return Instructions(config.ask_confidence, config.prompt_variants, config.seed)


def episodes_of(
    config: RunConfig, suite: Suite, labels: Iterable[str]
) -> tuple[PlannedEpisode, ...]:
    """Return the episodes of a run or of its shard, in the order of the plan.

    Args:
        config: of the run.
        suite: its tasks.
        labels: of its agents.
    """
    data_source = data_source_of(config, suite)
    planned = tuple(
        plan_episodes(
            suite,
            tuple(labels),
            config.trials,
            config.seed,
            data_source,
            instructions_of(config),
            monitor_names(config),
        )
    )
    if config.shard is None:
        return planned
    part = Shard.parse(config.shard).part_of(episode.name for episode in planned)
    return tuple(episode for episode in planned if episode.name in part)
