"""The probe reports a service that is stopped or killed, and starts another one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from fumehood.engines.engine import EngineOptions
from fumehood.engines.process import ProcessEngine
from fumehood.redteam import victim
from fumehood.redteam.attacks import Attack, Boundary, Result
from fumehood.redteam.probe import Probe

pytestmark = pytest.mark.slow


@pytest.fixture
def probe() -> Iterator[Probe]:
    with closing(ProcessEngine(EngineOptions(trust=True))) as engine, Probe(engine) as attacked:
        yield attacked


def _signal_the_service(probe: Probe, number: signal.Signals, then: str = "") -> Attack:
    """Return an attack that signals the service, as a vulnerability would permit."""
    file = "hole.py"
    begin = "import os, signal, time\nprint('tried it: begun', flush=True)\n"
    code = f"{begin}os.kill({probe.worker.pid}, {number.value})\n{then}"
    (probe.agents.path / file).write_text(code, encoding="utf-8")
    return Attack("hole", file, Boundary.SERVICE, "nothing", "use a vulnerability")


def test_a_dead_service_is_reported(probe: Probe) -> None:
    verdict = probe.attack(_signal_the_service(probe, signal.SIGKILL))
    assert verdict.result is Result.NOT_STOPPED
    assert "the infrastructure failed" in verdict.detail
    assert "the service died" in verdict.detail
    (probe.agents.path / "hole.py").write_text("print('tried nothing')\n", encoding="utf-8")
    assert probe.attack(verdict.attack).result is Result.STOPPED


def test_a_silent_service_is_reported(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victim, "ANSWER_TIMEOUT_S", 1.0)
    wakes_it = f"time.sleep(2)\nos.kill({probe.worker.pid}, signal.SIGCONT)\n"
    verdict = probe.attack(_signal_the_service(probe, signal.SIGSTOP, wakes_it))
    assert verdict.result is Result.NOT_STOPPED
    assert any(
        reason in verdict.detail
        for reason in (
            "another episode was not served",
            "the service or the orchestrator was stopped",
        )
    )
