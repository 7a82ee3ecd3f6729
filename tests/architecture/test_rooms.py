"""Which room knows which, and which library: .importlinter says the first, the table here the second."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from functools import cache

import grimp
import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.project import PACKAGES, ROOT

LIBRARIES = {
    "glovebox_agent": {"glovebox", "grpc"},
    "runner.__main__": set(),
    "runner.agents": set(),
    "runner.bench": {"docker", "glovebox", "grpc", "rich"},
    "runner.benchmarks": {"pydantic", "yaml"},
    "runner.cli": {"click", "rich", "structlog"},
    "runner.core": set(),
    "runner.engines": {"docker", "requests", "tenacity", "urllib3"},
    "runner.faults": set(),
    "runner.gateway": {"httpx2", "starlette", "tenacity"},
    "runner.hostile": {"structlog"},
    "runner.layers": {"jsonschema_rs"},
    "runner.moderators": set(),
    "runner.orchestrator": {"pydantic", "structlog", "yaml"},
    "runner.profiles": set(),
    "runner.records": {"cryptography"},
    "runner.report": {"jinja2", "markupsafe", "numpy", "pyarrow", "scipy", "vl_convert"},
    "runner.scorers": set(),
    "runner.service": set(),
    "runner.testing": set(),
    "runner.upstream": set(),
    "runner.vectors": {"pydantic"},
    "runner.version": set(),
    "runner.wire": {"glovebox", "google", "grpc", "mcp", "mcp_types", "starlette", "uvicorn"},
    "runner.worlds": {"pydantic", "pymysql"},
}
"""Room → what it imports that is neither ours nor Python's own. The snapshots have libraries of their own."""


@cache
def _libraries_in_use() -> dict[str, set[str]]:
    graph = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    used: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"runner", "snapshots"}:
        top, *inner = module.split(".")
        if top not in PACKAGES:
            continue
        room = f"{top}.{inner[0]}" if top == "runner" else top
        for imported in graph.find_modules_directly_imported_by(module):
            library = imported.split(".")[0]
            if library not in PACKAGES and library not in sys.stdlib_module_names:
                used[room].add(library)
            else:
                used[room]  # a room without a library is a room too
    return used


def test_rooms_import_only_what_the_contracts_allow(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize("room", LIBRARIES)
def test_a_room_imports_no_library_but_its_own(room: str) -> None:
    assert _libraries_in_use()[room] <= LIBRARIES[room]


def test_every_room_says_which_libraries_it_imports() -> None:
    assert _libraries_in_use().keys() - {"snapshots"} <= LIBRARIES.keys()


@pytest.mark.parametrize("room", ["agent_sdk", "proto", "runner", "snapshots", "tests"])
def test_git_ignores_no_source_of_ours(room: str) -> None:
    ignored = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            room,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert [
        name for name in ignored if name.endswith((".py", ".pyi", ".proto")) and "node_modules" not in name
    ] == []
