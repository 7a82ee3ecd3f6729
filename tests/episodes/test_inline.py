"""The inline engine: built-in agents inside the service, with the traces of agents in processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.core.clock import StoppedClock
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.gold import Gold
from fumehood.core.ledger import Budget
from fumehood.core.outcome import AgentCrashed, Finished, Infra, InfraKind, Outcome, TimedOut
from fumehood.core.task import Case
from fumehood.engines.engine import AgentKind, AgentSource, Limits
from fumehood.engines.process import ProcessEngine
from fumehood.orchestrator.episode_runner import (
    Attempt,
    BoxPlan,
    InlinePlan,
    attempt_episode,
)
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.scoring import PlayedAttempt, score_attempt
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool
from fumehood.service.inline import ERROR_BYTES, play_in_process
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.wire.convert import played_to_pb
from fumehood.wire.ports import InlineAgent
from fumehood_agent.in_process import InProcessSession
from tests.parts.specs import episode_spec
from tests.parts.tasks import crud_task

SUBMIT = '[{"submit": "done"}]'


@pytest.fixture(scope="module")
def inline_pool() -> Iterator[ServicePool]:
    with ServicePool(1, ServiceOptions(inline=True)) as services:
        yield services


def planned(*, wall_ms: int = 20_000, **change: Any) -> PlannedEpisode:
    task = crud_task(**{"seats": episode_spec(wall_ms=wall_ms).seats, **change})
    return PlannedEpisode(
        "agent", Case(task, Gold("native", ({"op": "exists", "path": "accounts.ax1"},))), 0, 1
    )


def plan(name: str, moves_json: str = "", seat: str = "agent") -> InlinePlan:
    return InlinePlan((InlineAgent(seat, name, moves_json),))


def outcome_of(episode: PlannedEpisode, attempt: Attempt) -> Outcome:
    return score_attempt(
        PlayedAttempt(episode.case, attempt.records, attempt.exit), attempt.infra
    ).outcome


def played(pool: ServicePool, inline: InlinePlan, **change: Any) -> Outcome:
    episode = planned(**change)
    return outcome_of(episode, attempt_episode(episode.to_spec(1000), inline, pool))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["heuristic", "policy_aware", "instruction_parser"])
def test_a_sample_task_has_the_same_trace_inline_and_in_a_process(
    agent: str, pool: ServicePool, inline_pool: ServicePool
) -> None:
    engine = ProcessEngine()
    boxed = BoxPlan(
        engine=engine, image=engine.prepare(AgentSource(AgentKind.BUILTIN, agent)), limits=Limits()
    )
    for case in load_suite("sample").cases[::20]:
        spec = PlannedEpisode(agent, case, 0, case.task.seed).to_spec(60_000)
        in_process = attempt_episode(spec, boxed, pool)
        inline = attempt_episode(spec, plan(agent, seat=spec.seats[0].name), inline_pool)
        assert [record.hash for record in inline.records] == [
            record.hash for record in in_process.records
        ]
        assert score_attempt(PlayedAttempt(case, inline.records, inline.exit)) == score_attempt(
            PlayedAttempt(case, in_process.records, in_process.exit)
        )
    engine.close()


def test_one_worker_plays_many_episodes(inline_pool: ServicePool) -> None:
    before = inline_pool.workers()[0].client.health().episodes_closed
    outcomes = [played(inline_pool, plan("oracle", SUBMIT)) for _ in range(3)]
    assert outcomes == [Finished("done")] * 3
    health = inline_pool.workers()[0].client.health()
    assert (health.episodes_closed - before, health.episodes_open) == (3, 0)


def test_an_agent_that_raises_ends_its_own_episode_alone(inline_pool: ServicePool) -> None:
    episode = planned()
    attempt = attempt_episode(
        episode.to_spec(1000), plan("oracle", '[{"unknown": "move"}]'), inline_pool
    )
    assert outcome_of(episode, attempt) == AgentCrashed("exit status 2")
    assert attempt.output is not None
    assert b"call 0 is none of tool_name with args" in attempt.output.stderr
    assert played(inline_pool, plan("oracle", SUBMIT)) == Finished("done")


@pytest.mark.parametrize(
    ("agent", "user", "outcome"),
    [
        ("[0]", SUBMIT, AgentCrashed("exit status 2")),
        (SUBMIT, "[0]", Infra(InfraKind.COUNTERPART, "seat user: exited, exit status 2")),
    ],
)
def test_a_counterpart_that_raises_does_not_count_against_the_tested_agent(
    agent: str, user: str, outcome: Outcome, inline_pool: ServicePool
) -> None:
    seats = tuple(
        SeatSpec(name=name, instruction="Talk.", budget=Budget(wall_ms=20_000))
        for name in ("agent", "user")
    )
    dialogue = ConversationSpec("dialogue", {"first": "user"})
    agents = (InlineAgent("agent", "oracle", agent), InlineAgent("user", "script", user))
    inline = InlinePlan(agents, frozenset({"user"}))
    assert played(inline_pool, inline, seats=seats, conversation=dialogue) == outcome


def test_only_the_end_of_an_error_is_kept_and_surrogates_are_escaped() -> None:
    def raise_error(session: InProcessSession) -> None:
        raise ValueError("a" * 2 * ERROR_BYTES + "\ud800")

    result = play_in_process(episode_spec(), {"agent": raise_error}, StoppedClock(), SeatLimits())
    assert result.agent_error.endswith("a\\ud800\n")
    assert len(played_to_pb(result).agent_error) == ERROR_BYTES


def test_a_character_of_an_error_that_is_cut_is_replaced() -> None:
    def raise_error(session: InProcessSession) -> None:
        raise ValueError("é" * ERROR_BYTES + end)

    for end in ("a", "aa"):
        result = play_in_process(
            episode_spec(), {"agent": raise_error}, StoppedClock(), SeatLimits()
        )
        assert result.agent_error.lstrip("\ufffd").strip("é") == f"{end}\n"


def test_an_agent_that_uses_up_its_wall_time_is_timed_out(inline_pool: ServicePool) -> None:
    large = {"accounts": {f"a{number}": {"id": f"a{number}"} for number in range(2_000)}}
    moves = '[{"tool_name": "list_accounts", "args": {}}, {"submit": "late"}]'
    assert played(inline_pool, plan("oracle", moves), wall_ms=1, initial_state=large) == TimedOut(1)


@pytest.mark.parametrize(
    ("inline", "change", "reason"),
    [
        (plan("oracle", SUBMIT), {"world": "nowhere"}, "nowhere"),
        (plan("react"), {}, "'react' is not a built-in agent"),
        (plan("os:system"), {}, "'os:system' is not a built-in agent"),
        (InlinePlan(()), {}, "the seat 'agent' has no agent"),
    ],
)
def test_an_episode_that_cannot_be_played_inline_names_the_reason(
    inline: InlinePlan, change: dict[str, Any], reason: str, inline_pool: ServicePool
) -> None:
    outcome = played(inline_pool, inline, **change)
    assert isinstance(outcome, Infra)
    assert outcome.kind is InfraKind.TASK
    assert reason in outcome.detail


def test_an_inline_service_opens_no_episode_for_a_box(inline_pool: ServicePool) -> None:
    engine = ProcessEngine()
    boxed = BoxPlan(
        engine=engine, image=engine.prepare(AgentSource(AgentKind.BUILTIN, "noop")), limits=Limits()
    )
    attempt = attempt_episode(planned().to_spec(1000), boxed, inline_pool)
    assert attempt.infra == Infra(
        InfraKind.TASK, "service: plays built-in agents inline and opens no episode for a box"
    )
    engine.close()


def test_a_service_for_boxes_plays_no_agent_inline(pool: ServicePool) -> None:
    attempt = attempt_episode(planned().to_spec(1000), plan("oracle", SUBMIT), pool)
    assert attempt.infra == Infra(
        InfraKind.TASK, "service: opens episodes for boxes and plays no agent inline"
    )


@pytest.mark.slow
def test_a_service_that_dies_costs_at_most_one_attempt() -> None:
    with ServicePool(1, ServiceOptions(inline=True)) as own_pool:
        assert played(own_pool, plan("oracle", SUBMIT)) == Finished("done")
        os.kill(own_pool.workers()[0].pid, signal.SIGKILL)
        outcome = played(own_pool, plan("oracle", SUBMIT))
        # The pool may notice the death before the attempt and start another service.
        if outcome != Finished("done"):
            assert isinstance(outcome, Infra)
            assert outcome.kind is InfraKind.SERVICE
        assert played(own_pool, plan("oracle", SUBMIT)) == Finished("done")
