"""Lanes: an agent does on one what it would do in a process of its own, and no episode spoils the next."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fumehood.benchmarks.table import load_suite
from fumehood.core.gold import Gold
from fumehood.core.outcome import (
    AgentCrashed,
    Finished,
    Infra,
    InfraKind,
    Outcome,
    OutOfBudget,
    TimedOut,
)
from fumehood.core.task import Case
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec, Image, Limits
from fumehood.engines.process import ProcessEngine
from fumehood.engines.subprocess_box import ChildBox
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.judge import judge
from fumehood.orchestrator.lane import Lanes
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.service_pool import ServicePool
from tests.parts.specs import episode_spec
from tests.parts.tasks import crud_task

ON_A_LANE = """
import os, sys, time
from fumehood_agent.lane import play_lane
episodes = 0
def play(seat):
    global episodes
    episodes += 1
    WORK
play_lane(sys.argv[-1], play)
"""


class CountingEngine(ProcessEngine):
    """Plain processes, counted."""

    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    def start(self, spec: BoxSpec) -> ChildBox:
        self.started += 1
        return super().start(spec)


@pytest.fixture
def engine() -> Iterator[CountingEngine]:
    made = CountingEngine()
    yield made
    made.close()


@pytest.fixture
def own_pool() -> Iterator[ServicePool]:
    """One service, which the test may kill."""
    with ServicePool(1) as services:
        yield services


@pytest.fixture
def lanes(engine: CountingEngine, own_pool: ServicePool) -> Iterator[Lanes]:
    made = Lanes(engine, own_pool)
    yield made
    made.close()


def planned(*, wall_ms: int = 20_000, **change: Any) -> PlannedEpisode:
    task = crud_task(**{"seats": episode_spec(wall_ms=wall_ms).seats, **change})
    return PlannedEpisode(
        "agent", Case(task, Gold("native", ({"op": "exists", "path": "accounts.ax1"},))), 0, 1
    )


def plan(work: str) -> BoxPlan:
    code = ON_A_LANE.replace("WORK", work.replace("\n", "\n    "))
    return BoxPlan(image=Image("", "", (sys.executable, "-c", code)), limits=Limits(), on_lane=True)


def outcome_of(episode: PlannedEpisode, attempt: Attempt) -> Outcome:
    return judge(episode.case, attempt.records, attempt.exit, attempt.infra).outcome


def played(lanes: Lanes, work: str, **change: Any) -> Outcome:
    episode = planned(**change)
    return outcome_of(episode, lanes.attempt(episode.to_spec(1000), plan(work)))


@pytest.mark.parametrize("agent", ["heuristic", "policy_aware", "instruction_parser"])
def test_every_sample_task_has_the_same_trace_as_with_a_process_of_its_own(
    agent: str, engine: CountingEngine, pool: ServicePool
) -> None:
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, agent))
    boxed, on_lane = (
        BoxPlan(image=image, limits=Limits(), on_lane=on_lane) for on_lane in (False, True)
    )
    lanes = Lanes(engine, pool)
    for case in load_suite("sample").cases[::8]:
        spec = PlannedEpisode(agent, case, 0, case.task.seed).to_spec(60_000)
        alone = attempt_episode(spec, engine, boxed, pool)
        beside = lanes.attempt(spec, on_lane)
        assert [record.hash for record in beside.records] == [
            record.hash for record in alone.records
        ]
        assert judge(case, beside.records, beside.exit, None) == judge(
            case, alone.records, alone.exit, None
        )
    lanes.close()


def test_one_process_plays_many_episodes(
    lanes: Lanes, engine: CountingEngine, own_pool: ServicePool
) -> None:
    work = "seat.call('get_account', {'id': 'ax1'}); seat.submit(str(episodes))"
    assert [played(lanes, work) for _ in range(5)] == [
        Finished(str(number)) for number in range(1, 6)
    ]
    assert engine.started == 1
    assert own_pool.workers()[0].client.health().episodes_closed == 5


def test_an_agent_that_returns_without_a_word_has_not_submitted(
    lanes: Lanes, engine: CountingEngine
) -> None:
    assert played(lanes, "pass") == AgentCrashed("exited without submitting")
    assert played(lanes, "pass") == AgentCrashed("exited without submitting")
    assert engine.started == 1


def test_an_agent_may_use_its_budget_up_and_play_on(lanes: Lanes, engine: CountingEngine) -> None:
    work = "while not seat.ended: seat.call('get_account', {'id': 'ax1'})"
    short = episode_spec(wall_ms=20_000, calls=3).seats
    assert [type(played(lanes, work, seats=short)) for _ in range(2)] == [OutOfBudget, OutOfBudget]
    assert engine.started == 1


def test_an_agent_that_crashes_spoils_its_own_episode_alone(
    lanes: Lanes, engine: CountingEngine
) -> None:
    work = "seat.call('get_account', {'id': 'ax1'})\nif episodes == 2: sys.exit(41)\nseat.submit()"
    outcomes = [played(lanes, work) for _ in range(3)]
    assert outcomes == [Finished(""), AgentCrashed("exit status 41"), Finished("")]
    assert engine.started == 2


def test_what_a_crashing_agent_printed_is_kept(lanes: Lanes) -> None:
    attempt = lanes.attempt(planned().to_spec(1000), plan("raise RuntimeError('no more')"))
    assert attempt.output is not None
    assert b"RuntimeError: no more" in attempt.output.stderr


def test_an_agent_that_hangs_is_stopped_when_its_time_is_over(lanes: Lanes) -> None:
    started = time.monotonic()
    assert played(
        lanes, "time.sleep(600 if episodes == 1 else 0); seat.submit()", wall_ms=400
    ) == TimedOut(400)
    assert time.monotonic() - started < 10
    assert played(lanes, "seat.submit()") == Finished("")


def test_an_agent_that_never_comes_is_not_waited_for(engine: CountingEngine, lanes: Lanes) -> None:
    gone = BoxPlan(
        image=Image("", "", (sys.executable, "-c", "raise SystemExit(7)")), limits=Limits()
    )
    episode = planned()
    started = time.monotonic()
    assert outcome_of(episode, lanes.attempt(episode.to_spec(1000), gone)) == AgentCrashed(
        "exit status 7"
    )
    assert time.monotonic() - started < 10


def test_noise_on_its_connection_ends_an_agents_lane(lanes: Lanes) -> None:
    work = "seat._connection.send_bytes(b'\\xff' * 9); time.sleep(600)"
    assert played(lanes, work) == AgentCrashed("killed")
    assert played(lanes, "seat.submit()") == Finished("")


def test_a_message_that_is_too_long_ends_an_agents_lane(lanes: Lanes) -> None:
    work = "seat.call('get_account', {'id': 'a' * (5 << 20)})"
    assert played(lanes, work) == AgentCrashed("exit status 1")
    assert played(lanes, "seat.submit()") == Finished("")


def test_a_task_that_cannot_be_hosted_is_not_played_and_the_lane_goes_on(
    lanes: Lanes, engine: CountingEngine
) -> None:
    assert played(lanes, "seat.submit()") == Finished("")
    outcome = played(lanes, "seat.submit()", world="nowhere")
    assert isinstance(outcome, Infra)
    assert outcome.what is InfraKind.TASK
    assert played(lanes, "seat.submit()") == Finished("")
    assert engine.started == 1


def test_a_service_that_dies_costs_one_attempt(lanes: Lanes, own_pool: ServicePool) -> None:
    assert played(lanes, "seat.submit()") == Finished("")
    os.kill(own_pool.workers()[0].pid, signal.SIGKILL)
    outcome = played(lanes, "seat.submit()")
    assert isinstance(outcome, Infra)
    assert outcome.what is InfraKind.SERVICE
    assert played(lanes, "seat.submit()") == Finished("")


def test_time_is_over_when_it_is_over_also_where_the_world_opened_slowly(lanes: Lanes) -> None:
    large = {"accounts": {f"a{number}": {"id": f"a{number}"} for number in range(20_000)}}
    outcome = played(lanes, "time.sleep(600)", wall_ms=2_000, initial_state=large)
    assert outcome == TimedOut(2_000)
    assert played(lanes, "seat.submit()") == Finished("")


def test_an_agent_that_is_stopped_before_it_came_costs_no_more_than_its_time(lanes: Lanes) -> None:
    started = time.monotonic()
    assert played(lanes, "seat.submit()", wall_ms=20) == TimedOut(20)
    assert time.monotonic() - started < 10
