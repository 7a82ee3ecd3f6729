"""All worlds, and the optional interfaces of a world."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from fumehood.core.episode_spec import DataMode, DataSource, EpisodeSpec
from fumehood.core.json_values import JsonObject, copy_object
from fumehood.core.registry import Registry
from fumehood.core.tools import Toolset, World
from fumehood.third_party.outside import CheckerOutside, Outside

PATHS = ("snapshot", "recording")
"""Settings of a data source that are paths."""

WorldFactory = Callable[[JsonObject], World]
"""Creates a world that owns its state. Raises SpecError for an unusable state."""

WORLDS: Registry[WorldFactory] = Registry(
    "world",
    {
        "agentdojo": "fumehood.benchmarks.agentdojo.world:AgentDojo",
        "bargaining": "fumehood.benchmarks.marble.world_bargaining:Bargaining",
        "bfcl": "fumehood.benchmarks.bfcl.world:Bfcl",
        "bfcl_calls": "fumehood.benchmarks.bfcl.world_calls:BfclCalls",
        "bfcl_memory": "fumehood.benchmarks.bfcl.world_memory:BfclMemory",
        "bfcl_vector": "fumehood.benchmarks.bfcl.world_vector:BfclVector",
        "bfcl_web": "fumehood.benchmarks.bfcl.world_web:BfclWeb",
        "card_game": "fumehood.benchmarks.cardgame.world:CardGame",
        "crud": "fumehood.worlds.crud:Crud",
        "declared": "fumehood.worlds.declared:Declared",
        "declared_python": "fumehood.worlds.declared_python:DeclaredPython",
        "files": "fumehood.worlds.files:Files",
        "knowledge_graph": "fumehood.benchmarks.knowledge.world:KnowledgeGraph",
        "lateral_thinking": "fumehood.benchmarks.lateral.world:LateralThinking",
        "marble_database": "fumehood.benchmarks.marble.world_database:Database",
        "retrieval": "fumehood.worlds.retrieval:Retrieval",
        "safetybench": "fumehood.benchmarks.safetybench.world:SafetyBench",
        "scenario": "fumehood.worlds.scenario:Scenario",
        "scenario_python": "fumehood.worlds.scenario_python:ScenarioPython",
        "scheduling": "fumehood.worlds.scheduling:Scheduling",
        "search": "fumehood.worlds.search:Search",
        "sql": "fumehood.benchmarks.dbbench.world:Sql",
        "sql_mariadb": "fumehood.benchmarks.dbbench.world_mariadb:MariaDbSql",
        "taubench": "fumehood.benchmarks.taubench.world:TauBench",
        "tau2_company": "fumehood.benchmarks.tau2.world:Tau2Company",
        "tau2_mock": "fumehood.benchmarks.tau2.world_mock:Tau2Mock",
        "tau2_telecom": "fumehood.benchmarks.tau2.world_telecom:Tau2Telecom",
        "toolsandbox": "fumehood.benchmarks.toolsandbox.world:ToolSandbox",
        "webshop": "fumehood.benchmarks.webshop.world:WebShop",
        "werewolf": "fumehood.benchmarks.marble.world_werewolf:Werewolf",
        "workspace": "fumehood.worlds.workspace:Workspace",
    },
)


@runtime_checkable
class UsesDataSource(Protocol):
    """A world with external data, such as a snapshot or the network."""

    def attach_data_source(self, data_source: DataSource, session: str) -> None:
        """Open the external data. Called once, before the first call.

        Args:
            data_source: of the run.
            session: name of the episode; a recording separates requests by it.

        Raises:
            SpecError: the data does not exist, or does not have the digest in the state.
        """
        ...


@runtime_checkable
class ChecksItself(Protocol):
    """A world that validates arguments itself, such as that of a third-party benchmark. Only the
    names of tools are validated before a call."""

    checks_itself: bool
    """Always true."""


def checks_itself(world: World) -> bool:
    """Return whether a world validates arguments itself."""
    # An instance check of a Protocol takes longer than a call.
    return hasattr(world, "checks_itself") and isinstance(world, ChecksItself)


@runtime_checkable
class Seated(Protocol):
    """A world whose tools depend on the seat."""

    def seat(self, name: str) -> Toolset:
        """Return the tools of this seat.

        Raises:
            SpecError: the world has no such seat.
        """
        ...


def toolset_of(world: World, seat: str) -> Toolset:
    """Return the tools of one seat."""
    # An instance check of a Protocol takes longer than a call.
    return world.seat(seat) if hasattr(world, "seat") and isinstance(world, Seated) else world


def open_world(spec: EpisodeSpec) -> World:
    """Create the world of an episode from a copy of its state.

    Raises:
        InputError: there is no such world, or its state or data source is unusable.
    """
    world = WORLDS.load(spec.world)(copy_object(spec.initial_state))
    if spec.data_source is not None and isinstance(world, UsesDataSource):
        world.attach_data_source(spec.data_source, spec.episode_id)
    return world


def preload(names: Iterable[str]) -> None:
    """Import the libraries of these worlds, before the process is confined.

    Raises:
        InputError: there is no such world, or a library is not installed.
    """
    for name in names:
        load = getattr(sys.modules[WORLDS.load(name).__module__], "preload", None)
        if load is not None:
            load()


def checkers_of(names: Iterable[str]) -> set[str]:
    """Return the names of the third-party checkers that answer calls of these worlds.

    Raises:
        InputError: there is no such world.
    """
    modules = [sys.modules[WORLDS.load(name).__module__] for name in names]
    return {module.CHECKER for module in modules if hasattr(module, "CHECKER")}


def open_outside(spec: EpisodeSpec) -> Outside | None:
    """Open what the process of an episode needs and cannot reach; None if it needs nothing.

    Raises:
        InputError: there is no such world, or its state or data source is unusable.
        InfraError: what it needs does not start.
    """
    module = sys.modules[WORLDS.load(spec.world).__module__]
    if hasattr(module, "CHECKER"):
        return CheckerOutside(module.CHECKER, spec.initial_state)
    opens: Callable[[EpisodeSpec], Outside | None] | None = getattr(module, "open_outside", None)
    return opens(spec) if opens else None


def needs_outside(name: str) -> bool:
    """Return whether a process without the network cannot play a world alone.

    Raises:
        InputError: there is no such world.
    """
    module = sys.modules[WORLDS.load(name).__module__]
    return needs_server(name) or hasattr(module, "CHECKER")


def needs_server(name: str) -> bool:
    """Return whether the state of a world decides what a program outside of it starts or reaches:
    a database server, an endpoint or a workspace.

    Raises:
        InputError: there is no such world.
    """
    module = sys.modules[WORLDS.load(name).__module__]
    return hasattr(module, "open_outside") and not needs_data_source(name)


def readable_paths(spec: EpisodeSpec) -> tuple[str, ...]:
    """Return the files and folders that the process of an episode reads.

    Raises:
        InputError: there is no such world.
    """
    source = spec.data_source
    settings: JsonObject = {}
    if source is not None and source.data_mode in (DataMode.OFFLINE, DataMode.REPLAY):
        settings = source.settings
    module = sys.modules[WORLDS.load(spec.world).__module__]
    in_state = [spec.initial_state.get(key) for key in getattr(module, "READS", ())]
    paths = [settings.get(key) for key in PATHS] + in_state
    return tuple(path for path in paths if isinstance(path, str) and os.path.isabs(path))


def needs_data_source(name: str) -> bool:
    """Return whether a world needs external data."""
    return hasattr(WORLDS.load(name), "attach_data_source")
