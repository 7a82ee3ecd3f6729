"""Registries list exactly the classes that implement their Protocols."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

import click
import pytest

from fumehood.benchmarks.registry import BENCHMARKS, Benchmark
from fumehood.cli.main import COMMANDS
from fumehood.core.registry import Registry
from fumehood.core.tools import Layer, Toolset
from fumehood.engines.engine import Engine
from fumehood.engines.registry import ENGINES
from fumehood.harness_modes.registry import HARNESS_MODES, HarnessMode
from fumehood.layers.faults.registry import FAMILIES, TOOLMISUSE_FAMILIES
from fumehood.scorers.registry import SCORERS, Scorer
from fumehood.worlds.registry import WORLDS
from fumehood_agent.adapter import Agent
from fumehood_agent.builtin import BUILTIN
from tests.architecture.project import modules

FAULTS = {
    f"{name} {path}": path
    for registry in (FAMILIES, TOOLMISUSE_FAMILIES)
    for name, path in registry.table.items()
}
TABLES = [
    pytest.param("fumehood_agent.builtin", Agent, BUILTIN, id="agents"),
    pytest.param("fumehood.benchmarks", Benchmark, BENCHMARKS.table, id="benchmarks"),
    pytest.param("fumehood.engines", Engine, ENGINES.table, id="engines"),
    pytest.param("fumehood.layers.faults", Layer, FAULTS, id="faults"),
    pytest.param("fumehood.harness_modes", HarnessMode, HARNESS_MODES.table, id="harness modes"),
    pytest.param("fumehood.scorers", Scorer, SCORERS.table, id="scorers"),
    pytest.param("fumehood.worlds", Toolset, WORLDS.table, id="worlds"),
]
REGISTRIES = [BENCHMARKS, ENGINES, FAMILIES, HARNESS_MODES, SCORERS, WORLDS]


HOMES = {
    "fumehood.scorers": ("fumehood.scorers", "fumehood.benchmarks"),
    "fumehood.worlds": ("fumehood.worlds", "fumehood.benchmarks"),
}
"""Registry package → the packages of its entries, if they differ."""


def _methods(protocol: type) -> set[str]:
    return {
        name
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and name[0] != "_"
    }


def _implementations(package: str, protocol: type) -> Iterator[str]:
    """Yield every public class of a package that has all methods of ``protocol``."""
    for name in modules(package):
        module = import_module(name)
        for attribute, value in vars(module).items():
            candidate = (
                inspect.isclass(value)
                and not attribute.startswith("_")
                and not inspect.isabstract(value)
                and value.__module__ == name
                and value is not protocol
            )
            if candidate and all(hasattr(value, method) for method in _methods(protocol)):
                yield f"{name}:{attribute}"


@pytest.mark.parametrize(("package", "protocol", "table"), TABLES)
def test_a_registry_lists_every_implementation(
    package: str, protocol: type, table: dict[str, str]
) -> None:
    listed = {_home(path) for path in table.values()}
    assert listed == {
        found
        for place in HOMES.get(package, (package,))
        for found in _implementations(place, protocol)
    }


def _home(path: str) -> str:
    """Return the defining module of a class that a registry names."""
    module, _, attribute = path.partition(":")
    return f"{getattr(import_module(module), attribute).__module__}:{attribute}"


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_entry_of_a_registry_can_be_loaded(registry: Registry[object]) -> None:
    assert registry.table
    for name in registry:
        assert callable(registry.load(name))


def test_every_module_with_a_command_is_registered() -> None:
    listed = {path.partition(":")[0] for path in COMMANDS.values()}
    written = {name for name in modules("fumehood.cli") if _holds_a_command(name)}
    assert written - {"fumehood.cli.main"} <= listed


def _holds_a_command(module: str) -> bool:
    return any(isinstance(value, click.Command) for value in vars(import_module(module)).values())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_its_registered_name(command: str) -> None:
    module, _, attribute = COMMANDS[command].partition(":")
    assert getattr(import_module(module), attribute).name == command
