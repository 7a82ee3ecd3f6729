"""Import contracts between packages (.importlinter), and the libraries of each package."""

from __future__ import annotations

import configparser
import subprocess
import sys
from collections import defaultdict
from functools import cache

import grimp
import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from fumehood.worlds.registry import WORLDS
from tests.architecture.project import PACKAGES, ROOT

LIBRARIES = {
    "fumehood_agent": {"google", "grpc"},
    "fumehood.__main__": set(),
    "fumehood.agent_check": set(),
    "fumehood.benchmarks": {
        "jsonschema_rs",
        "numpy",
        "pydantic",
        "pydantic_core",
        "pymysql",
        "sqlglot",
        "yaml",
    },
    "fumehood.api": {"pandas", "polars", "pytest", "rich"},
    "fumehood.cli": {"click", "rich", "structlog"},
    "fumehood.core": set(),
    "fumehood.exports": {"backports", "compression"},
    "fumehood.engines": {"docker", "requests", "structlog", "tenacity", "urllib3"},
    "fumehood.gateway": {"httpx2", "starlette", "tenacity"},
    "fumehood.redteam": {"cryptography", "google", "grpc", "structlog"},
    "fumehood.layers": {"jsonschema_rs"},
    "fumehood.monitors": set(),
    "fumehood.turn_policies": set(),
    "fumehood.orchestrator": {"pydantic", "ray", "structlog", "yaml"},
    "fumehood.harness_modes": set(),
    "fumehood.records": {"cryptography"},
    "fumehood.report": {"jinja2", "markupsafe", "numpy", "pyarrow", "scipy", "vl_convert"},
    "fumehood.scorers": set(),
    "fumehood.service": set(),
    "fumehood.testing": {"hypothesis", "jsonschema_rs", "pytest"},
    "fumehood.supervised": set(),
    "fumehood.third_party": set(),
    "fumehood.version": set(),
    "fumehood.wire": {"google", "grpc", "mcp", "mcp_types", "starlette", "uvicorn"},
    "fumehood.worlds": set(),
}
"""Package → its third-party libraries. The snapshots are not restricted."""


@cache
def _libraries_in_use() -> dict[str, set[str]]:
    graph = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    used: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"fumehood", "fumehood_snapshots"}:
        top, *inner = module.split(".")
        if top not in PACKAGES:
            continue
        package = f"{top}.{inner[0]}" if top == "fumehood" else top
        for imported in graph.find_modules_directly_imported_by(module):
            library = imported.split(".")[0]
            if library not in PACKAGES and library not in sys.stdlib_module_names:
                used[package].add(library)
            else:
                used[package]  # registers a package without libraries
    return used


@pytest.mark.slow
def test_packages_import_only_what_the_contracts_allow(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize("package", LIBRARIES)
def test_a_package_imports_only_its_listed_libraries(package: str) -> None:
    assert _libraries_in_use()[package] <= LIBRARIES[package]


def test_every_package_is_listed() -> None:
    assert _libraries_in_use().keys() - {"fumehood_snapshots"} <= LIBRARIES.keys()


@pytest.mark.parametrize("package", ["agent_sdk", "proto", "runner", "snapshots", "tests"])
def test_git_ignores_no_source_file(package: str) -> None:
    ignored = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            package,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert [
        name
        for name in ignored
        if name.endswith((".py", ".pyi", ".proto")) and "node_modules" not in name
    ] == []


def test_the_contract_about_gold_covers_every_world_of_a_benchmark() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    sources = contracts["importlinter:contract:gold-unreachable"]["source_modules"].split()
    modules = {entry.partition(":")[0] for entry in WORLDS.table.values()}
    of_benchmarks = {name for name in modules if name.startswith("fumehood.benchmarks.")}
    assert of_benchmarks
    assert [
        name for name in of_benchmarks if not name.endswith(".world") and name not in sources
    ] == []
