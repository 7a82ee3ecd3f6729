"""Every simulator there is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from fumehood.core.episode_spec import DataSource, EpisodeSpec
from fumehood.core.json_values import JsonObject, copy_object
from fumehood.core.registry import Registry
from fumehood.core.tools import Toolset, World

WorldFactory = Callable[[JsonObject], World]
"""Makes a world that takes over its state; raises SpecError for a state it cannot live in."""

WORLDS: Registry[WorldFactory] = Registry(
    "world",
    {
        "agentdojo": "fumehood.benchmarks.agentdojo.world:AgentDojo",
        "bargaining": "fumehood.benchmarks.marble.world_bargaining:Bargaining",
        "bfcl": "fumehood.benchmarks.bfcl.world:Bfcl",
        "bfcl_calls": "fumehood.benchmarks.bfcl.world_calls:BfclCalls",
        "bfcl_memory": "fumehood.benchmarks.bfcl.world_memory:BfclMemory",
        "crud": "fumehood.worlds.crud:Crud",
        "files": "fumehood.worlds.files:Files",
        "retrieval": "fumehood.worlds.retrieval:Retrieval",
        "safetybench": "fumehood.benchmarks.safetybench.world:SafetyBench",
        "scheduling": "fumehood.worlds.scheduling:Scheduling",
        "search": "fumehood.worlds.search:Search",
        "sql": "fumehood.benchmarks.dbbench.world:Sql",
        "sql_mariadb": "fumehood.benchmarks.dbbench.world_mariadb:MariaDbSql",
        "taubench": "fumehood.benchmarks.taubench.world:TauBench",
        "tau2_company": "fumehood.benchmarks.tau2.world:Tau2Company",
        "tau2_mock": "fumehood.benchmarks.tau2.world_mock:Tau2Mock",
        "tau2_telecom": "fumehood.benchmarks.tau2.world_telecom:Tau2Telecom",
        "werewolf": "fumehood.benchmarks.marble.world_werewolf:Werewolf",
    },
)


@runtime_checkable
class UsesDataSource(Protocol):
    """A world that serves what is not in its state: sealed documents, or the network within limits."""

    def attach_data_source(self, data_source: DataSource, session: str) -> None:
        """Find what it serves; called once, before the first call.

        Args:
            data_source: of the whole run.
            session: name of the episode; recordings keep the requests of different ones apart.

        Raises:
            SpecError: what the state names is not there, or is another.
        """
        ...


@runtime_checkable
class ChecksItself(Protocol):
    """A world of somebody else's benchmark: what it says to arguments that do not fit belongs to it, so
    nobody looks at them before. Names of tools are checked all the same."""

    checks_itself: bool
    """True."""


@runtime_checkable
class Seated(Protocol):
    """A world whose tools are not the same for every seat, or that must know whose call it carries out."""

    def seat(self, name: str) -> Toolset:
        """Return the tools as this seat has them.

        Raises:
            SpecError: the world has no such seat.
        """
        ...


def toolset_of(world: World, seat: str) -> Toolset:
    """Return the tools of one seat, which are the world's own unless it tells seats apart."""
    return world.seat(seat) if isinstance(world, Seated) else world


def open_world(spec: EpisodeSpec) -> World:
    """Return the world of an episode, made of a copy of its state.

    Raises:
        InputError: there is no such world, or it cannot live in its state or data_source.
    """
    world = WORLDS.load(spec.world)(copy_object(spec.initial_state))
    if spec.data_source is not None and isinstance(world, UsesDataSource):
        world.attach_data_source(spec.data_source, spec.episode_id)
    return world


def preload(names: Iterable[str]) -> None:
    """Import what these worlds need, before a process may no longer read it.

    Raises:
        InputError: there is no such world, or what it needs is not installed.
    """
    for name in names:
        load = getattr(sys.modules[WORLDS.load(name).__module__], "preload", None)
        if load is not None:
            load()


def needs_data_source(name: str) -> bool:
    """Tell whether the world called ``name`` serves what is not in its state."""
    return hasattr(WORLDS.load(name), "attach_data_source")
