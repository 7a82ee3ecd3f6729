"""One attempt with a real service and a real process: both are closed in every case."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.outcome import AgentCrashed, Finished, Infra, InfraKind, Outcome, TimedOut
from fumehood.core.task import Case
from fumehood.engines.engine import ExitReason, Image, Limits
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.episode_runner import (
    STOPPED_MS_MIN,
    Attempt,
    BoxPlan,
    attempt_episode,
)
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.scoring import PlayedAttempt, score_attempt
from fumehood.orchestrator.service_pool import ServicePool
from tests.parts.listening import wait_until
from tests.parts.specs import episode_spec
from tests.parts.tasks import crud_task

CONNECTED = """
import os, pathlib, time
from fumehood_agent import Session
session = Session()
print(os.getpid(), flush=True)
"""

FINISHES = CONNECTED + "session.call('get_account', {'id': 'ax1'}); session.submit('done')"
LEAVES = CONNECTED + "session.call('get_account', {'id': 'ax1'})"
FAILS = CONNECTED + "raise SystemExit(41)"
HANGS = CONNECTED + "time.sleep(600)"
SUBMITS_AND_STAYS = CONNECTED + "session.submit('done'); time.sleep(600)"
NEVER_STOPS = CONNECTED + "[session.call('get_account', {'id': 'ax1'}) for _ in range(10**9)]"
CREATES_A_JOB = """
from fumehood_agent import Session
session = Session()
try:
    session.call('create_job', {'name': 'a', 'cron': '* * * * *', 'command': 'c'})
finally:
    import time; time.sleep(600)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[ProcessEngine]:
    """Boxes that are plain processes."""
    made = ProcessEngine()
    yield made
    made.close()


@pytest.fixture
def own_pool() -> Iterator[ServicePool]:
    """One service, which the test may kill."""
    with ServicePool(1) as services:
        yield services


def planned(*, wall_ms: int = 20_000, **change: Any) -> PlannedEpisode:
    task = crud_task(**{"seats": episode_spec(wall_ms=wall_ms).seats, **change})
    gold = Gold("native", ({"op": "exists", "path": "accounts.ax1"},))
    return PlannedEpisode("agent", Case(task, gold), 0, 1)


def attempted(
    episode: PlannedEpisode, code: str, engine: ProcessEngine, pool: ServicePool
) -> Attempt:
    plan = BoxPlan(
        engine=engine, image=Image("", "", (sys.executable, "-c", code)), limits=Limits()
    )
    return attempt_episode(episode.to_spec(1000), plan, pool)


def outcome_of(episode: PlannedEpisode, attempt: Attempt) -> Outcome:
    return score_attempt(
        PlayedAttempt(episode.case, attempt.records, attempt.exit), attempt.infra
    ).outcome


def no_episode_is_open(pool: ServicePool) -> bool:
    return all(worker.client.health().episodes_open == 0 for worker in pool.workers())


def is_gone(attempt: Attempt) -> bool:
    """Return whether the agent that printed its process number has ended."""
    assert attempt.output is not None
    # An agent that was stopped before it printed has no number.
    return not attempt.output.stdout or not Path(f"/proc/{int(attempt.output.stdout)}").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (FINISHES, Finished("done")),
        (LEAVES, AgentCrashed("exited without submitting")),
        (FAILS, AgentCrashed("exit status 41")),
    ],
)
def test_the_outcome_of_an_agent_that_ends_by_itself(
    code: str, outcome: Outcome, engine: ProcessEngine, pool: ServicePool
) -> None:
    episode = planned()
    attempt = attempted(episode, code, engine, pool)
    assert attempt.infra is None
    assert outcome_of(episode, attempt) == outcome
    assert is_gone(attempt)
    assert no_episode_is_open(pool)


@pytest.mark.slow
def test_an_agent_that_hangs_is_stopped_when_its_time_is_over(
    engine: ProcessEngine, pool: ServicePool
) -> None:
    episode = planned(wall_ms=1500)
    attempt = attempted(episode, HANGS, engine, pool)
    assert attempt.exit is None
    assert outcome_of(episode, attempt) == TimedOut(1500)
    assert 1500 <= attempt.wall_ms < 15_000
    assert is_gone(attempt)
    assert no_episode_is_open(pool)


@pytest.mark.slow
def test_an_agent_that_never_stops_calling_is_stopped(
    engine: ProcessEngine, pool: ServicePool
) -> None:
    episode = planned(wall_ms=1500)
    attempt = attempted(episode, NEVER_STOPS, engine, pool)
    assert outcome_of(episode, attempt) == TimedOut(1500)
    assert no_episode_is_open(pool)


@pytest.mark.slow
def test_an_agent_that_stays_after_its_work_is_stopped(
    engine: ProcessEngine, pool: ServicePool
) -> None:
    episode = planned(wall_ms=60_000)
    attempt = attempted(episode, SUBMITS_AND_STAYS, engine, pool)
    assert outcome_of(episode, attempt) == Finished("done")
    assert attempt.exit is not None
    assert attempt.exit.reason is ExitReason.KILLED
    assert attempt.wall_ms < 30_000
    assert is_gone(attempt)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("code", [HANGS, NEVER_STOPS])
def test_a_service_that_ends_is_an_infrastructure_failure_and_stops_the_box(
    number: signal.Signals,
    code: str,
    engine: ProcessEngine,
    own_pool: ServicePool,
    tmp_path: Path,
) -> None:
    episode, connected = planned(wall_ms=60_000), tmp_path / "connected"
    code = code.replace(CONNECTED, f"{CONNECTED}pathlib.Path({str(connected)!r}).touch()\n")
    doomed = own_pool.workers()[0]
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(attempted, episode, code, engine, own_pool)
        assert wait_until(connected.exists)
        os.kill(doomed.pid, number)
        attempt = running.result(timeout=30)
    outcome = outcome_of(episode, attempt)
    assert isinstance(outcome, Infra)
    assert outcome.kind is InfraKind.SERVICE
    assert is_gone(attempt)
    # The next attempt gets a new service.
    assert outcome_of(episode, attempted(episode, FINISHES, engine, own_pool)) == Finished("done")
    assert own_pool.workers()[0].pid != doomed.pid


@pytest.mark.slow
@pytest.mark.parametrize("is_begun", [False, True])
def test_only_a_stop_in_the_episode_explains_that_an_agent_left(
    is_begun: bool, engine: ProcessEngine, own_pool: ServicePool, tmp_path: Path
) -> None:
    episode, connected, leave = planned(), tmp_path / "connected", tmp_path / "leave"
    code = CONNECTED + (
        f"pathlib.Path({str(connected)!r}).touch()\n"
        f"while not os.path.exists({str(leave)!r}): time.sleep(0.01)"
    )
    (service,) = own_pool.workers()

    def stop_service() -> None:
        before_ms = own_pool.stalls.stopped_ms()
        os.kill(service.pid, signal.SIGSTOP)
        assert wait_until(lambda: own_pool.stalls.stopped_ms() >= before_ms + 2 * STOPPED_MS_MIN)
        os.kill(service.pid, signal.SIGCONT)

    plan = BoxPlan(
        engine=engine,
        image=Image("", "", (sys.executable, "-c", code)),
        limits=Limits(),
    )
    with ThreadPoolExecutor(1) as thread:
        await_slot = (lambda: None) if is_begun else stop_service
        running = thread.submit(
            attempt_episode, episode.to_spec(1000), plan, own_pool, await_slot=await_slot
        )
        assert wait_until(connected.exists)
        if is_begun:
            stop_service()
        leave.touch()
        attempt = running.result(timeout=60)
    assert (attempt.infra is not None) == is_begun


def test_a_box_that_cannot_be_started_leaves_no_episode_open(
    engine: ProcessEngine, pool: ServicePool
) -> None:
    plan = BoxPlan(engine=engine, image=Image("", "", ("no_such_command",)), limits=Limits())
    with pytest.raises(InputError, match="no_such_command"):
        attempt_episode(planned().to_spec(1000), plan, pool)
    assert no_episode_is_open(pool)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"world": "moon"}, "no world is called 'moon'"),
        ({"initial_state": {"accounts": 1}}, "initial_state.accounts"),
        ({"seats": episode_spec(steps=2**63, wall_ms=1).seats}, "budget.steps: must be from 0 to"),
        ({"seats": episode_spec(wall_ms=1).seats * 2}, "seats: at least one seat is required"),
    ],
)
def test_a_task_that_cannot_be_hosted_is_a_failure_of_the_task(
    change: dict[str, Any], reason: str, engine: ProcessEngine, pool: ServicePool
) -> None:
    episode = planned(**change)
    outcome = outcome_of(episode, attempted(episode, FINISHES, engine, pool))
    assert isinstance(outcome, Infra)
    assert outcome.kind is InfraKind.TASK
    assert reason in outcome.detail
    assert no_episode_is_open(pool)


def test_a_world_that_fails_on_a_call_is_a_failed_attempt_and_stops_the_box(
    engine: ProcessEngine, pool: ServicePool
) -> None:
    episode = planned(world="scheduling", initial_state={"jobs": [{"cron": "*"}]}, wall_ms=60_000)
    attempt = attempted(episode, CREATES_A_JOB, engine, pool)
    scored = score_attempt(
        PlayedAttempt(episode.case, attempt.records, attempt.exit), attempt.infra
    )
    assert isinstance(scored.outcome, AgentCrashed)
    assert "initial_state.jobs[0].name: is missing" in scored.outcome.detail
    assert scored.score.success is False
    assert attempt.wall_ms < 30_000
    assert no_episode_is_open(pool)
