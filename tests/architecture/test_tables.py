"""A table of extensions and the folder beside it say the same."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

import click
import pytest
from glovebox_agent.adapter import Agent
from glovebox_agent.builtin import BUILTIN

from runner.benchmarks.benchmark import Benchmark
from runner.benchmarks.table import BENCHMARKS
from runner.cli.main import COMMANDS
from runner.core.registry import Registry
from runner.core.tools import Layer, Toolset
from runner.engines.engine import Engine
from runner.engines.table import ENGINES
from runner.faults.table import FAMILIES
from runner.profiles.profile import Profile
from runner.profiles.table import PROFILES
from runner.scorers.scorer import Scorer
from runner.scorers.table import SCORERS
from runner.worlds.table import WORLDS
from tests.architecture.project import modules

TABLES = [
    pytest.param("glovebox_agent.builtin", Agent, BUILTIN, id="agents"),
    pytest.param("runner.benchmarks", Benchmark, BENCHMARKS.table, id="benchmarks"),
    pytest.param("runner.engines", Engine, ENGINES.table, id="engines"),
    pytest.param("runner.faults", Layer, FAMILIES.table, id="faults"),
    pytest.param("runner.profiles", Profile, PROFILES.table, id="profiles"),
    pytest.param("runner.scorers", Scorer, SCORERS.table, id="scorers"),
    pytest.param("runner.worlds", Toolset, WORLDS.table, id="worlds"),
]
REGISTRIES = [BENCHMARKS, ENGINES, FAMILIES, PROFILES, SCORERS, WORLDS]


def _methods(protocol: type) -> set[str]:
    return {name for name, member in vars(protocol).items() if inspect.isfunction(member) and name[0] != "_"}


def _keepers(package: str, protocol: type) -> Iterator[str]:
    """Yield every class of a package that has all methods of ``protocol``."""
    for name in modules(package):
        module = import_module(name)
        for attribute, value in vars(module).items():
            ours = inspect.isclass(value) and value.__module__ == name and value is not protocol
            if ours and all(hasattr(value, method) for method in _methods(protocol)):
                yield f"{name}:{attribute}"


@pytest.mark.parametrize(("package", "protocol", "table"), TABLES)
def test_a_table_lists_whatever_keeps_its_protocol(
    package: str, protocol: type, table: dict[str, str]
) -> None:
    listed = {_home(path) for path in table.values()}
    assert listed == set(_keepers(package, protocol))


def _home(path: str) -> str:
    """Return where the class that a table names is written, which may be deeper than where it is shown."""
    module, _, attribute = path.partition(":")
    return f"{getattr(import_module(module), attribute).__module__}:{attribute}"


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_line_of_a_table_leads_somewhere(registry: Registry[object]) -> None:
    assert registry.table
    for name in registry:
        assert callable(registry.load(name))


def test_every_file_with_a_command_is_listed() -> None:
    listed = {path.partition(":")[0] for path in COMMANDS.values()}
    written = {name for name in modules("runner.cli") if _holds_a_command(name)}
    assert written - {"runner.cli.main"} <= listed


def _holds_a_command(module: str) -> bool:
    return any(isinstance(value, click.Command) for value in vars(import_module(module)).values())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_called_as_the_table_says(command: str) -> None:
    module, _, attribute = COMMANDS[command].partition(":")
    assert getattr(import_module(module), attribute).name == command
