"""The attacks on the service are real: one that believes everything falls for them, and a fall is seen.

Those that only wear a service out say nothing of their success; what sees it is tried here on a service that
is stopped or killed from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from fumehood.engines.engine import EngineOptions
from fumehood.engines.process import ProcessEngine
from fumehood.redteam import control_episodes
from fumehood.redteam.attack import Attack, Result, Wall
from fumehood.redteam.kit import AGENTS
from fumehood.redteam.probe import Probe
from tests.hostile.naive_service import naive_http, naive_service
from tests.parts.folders import short_folder

FALLS_FOR = {
    "forged_messages.py": "got the method /fumehood.v1.ControlService/OpenEpisode",
    "replays.py": "got six times the budget at once",
    "json_bombs.py": "got not a number",
    "oversized.py": "got arguments of 16 MiB",
    "http_nonsense.py": "got the path /fumehood.v1.ControlService/OpenEpisode",
}
"""Agent → what it then says it got."""


@pytest.mark.parametrize("agent", FALLS_FOR)
def test_an_attack_succeeds_where_the_service_believes_everything(agent: str) -> None:
    with (
        short_folder() as folder,
        naive_service(f"{folder}/grpc.sock"),
        naive_http(f"{folder}/http.sock"),
    ):
        said = subprocess.run(
            [sys.executable, str(AGENTS / agent)],
            env={**os.environ, "FUMEHOOD_SOCKET": f"{folder}/grpc.sock"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert FALLS_FOR[agent] in said.stdout


@pytest.fixture
def probe() -> Iterator[Probe]:
    with closing(ProcessEngine(EngineOptions(trust=True))) as engine, Probe(engine) as attacked:
        yield attacked


def _signal_the_service(probe: Probe, number: signal.Signals, then: str = "") -> Attack:
    """Return an attack as a hole in the service would make it possible."""
    file = "hole.py"
    begin = "import os, signal, time\nprint('tried it: begun', flush=True)\n"
    code = f"{begin}os.kill({probe.service_pid}, {number.value})\n{then}"
    (probe.kit_folder / file).write_text(code, encoding="utf-8")
    return Attack("hole", file, Wall.SERVICE, "nothing", "use a hole that is not there")


def test_a_service_that_dies_is_seen(probe: Probe) -> None:
    verdict = probe.attack(_signal_the_service(probe, signal.SIGKILL))
    assert verdict.result is Result.NOT_STOPPED
    assert "our side failed" in verdict.detail
    assert "the service died" in verdict.detail


def test_a_service_that_falls_silent_is_seen(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_episodes, "PATIENCE_S", 1.0)
    wakes_it = f"time.sleep(2)\nos.kill({probe.service_pid}, signal.SIGCONT)\n"
    verdict = probe.attack(_signal_the_service(probe, signal.SIGSTOP, wakes_it))
    assert verdict.result is Result.NOT_STOPPED
    assert "another episode waited" in verdict.detail
