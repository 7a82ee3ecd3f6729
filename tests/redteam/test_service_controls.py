"""Controls for attacks on the service: a service without checks is breached, and the probe reports
it.

Attacks that exhaust the service report no success themselves; their checks are tried on a service
that is stopped or killed from outside.
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
from fumehood.redteam.agent_folder import AGENTS
from fumehood.redteam.attacks import Attack, Boundary, Result
from fumehood.redteam.probe import Probe
from tests.parts.folders import short_folder
from tests.redteam.naive_service import naive_http, naive_service

BREACHED_BY = {
    "forged_messages.py": "got the method /fumehood.v1.ControlService/OpenEpisode",
    "replays.py": "got six times the budget at once",
    "json_bombs.py": "got not a number",
    "oversized.py": "got arguments of 16 MiB",
    "http_nonsense.py": "got the path /fumehood.v1.ControlService/OpenEpisode",
}
"""Agent → its reported success."""


@pytest.mark.slow
@pytest.mark.parametrize("agent", BREACHED_BY)
def test_an_attack_succeeds_on_a_service_without_checks(agent: str) -> None:
    with (
        short_folder() as folder,
        naive_service(f"{folder}/grpc.sock"),
        naive_http(f"{folder}/http.sock"),
    ):
        ended = subprocess.run(
            [sys.executable, str(AGENTS / agent)],
            env={**os.environ, "FUMEHOOD_SOCKET": f"{folder}/grpc.sock"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert BREACHED_BY[agent] in ended.stdout


@pytest.fixture
def probe() -> Iterator[Probe]:
    with closing(ProcessEngine(EngineOptions(trust=True))) as engine, Probe(engine) as attacked:
        yield attacked


def _signal_the_service(probe: Probe, number: signal.Signals, then: str = "") -> Attack:
    """Return an attack that signals the service, as a vulnerability would permit."""
    file = "hole.py"
    begin = "import os, signal, time\nprint('tried it: begun', flush=True)\n"
    code = f"{begin}os.kill({probe.service_pid}, {number.value})\n{then}"
    (probe.agent_folder / file).write_text(code, encoding="utf-8")
    return Attack("hole", file, Boundary.SERVICE, "nothing", "use a vulnerability")


def test_a_dead_service_is_reported(probe: Probe) -> None:
    verdict = probe.attack(_signal_the_service(probe, signal.SIGKILL))
    assert verdict.result is Result.NOT_STOPPED
    assert "the infrastructure failed" in verdict.detail
    assert "the service died" in verdict.detail


def test_a_silent_service_is_reported(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_episodes, "ANSWER_TIMEOUT_S", 1.0)
    wakes_it = f"time.sleep(2)\nos.kill({probe.service_pid}, signal.SIGCONT)\n"
    verdict = probe.attack(_signal_the_service(probe, signal.SIGSTOP, wakes_it))
    assert verdict.result is Result.NOT_STOPPED
    assert "another episode waited" in verdict.detail
