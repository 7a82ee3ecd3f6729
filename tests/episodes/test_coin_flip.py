"""An agent that tosses a coin and tries to void each attempt that it has lost gains nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from http.client import HTTPException
from itertools import count
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fumehood.benchmarks.bfcl.tasks import Bfcl
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.task import Case, Suite
from fumehood.gateway.health_check import TEXT
from fumehood.orchestrator.config import JudgingConfig
from fumehood.orchestrator.episode_runner import (
    Attempt,
    EpisodePlan,
    SessionPlan,
    attempt_episode,
)
from fumehood.orchestrator.episode_time import AwaitSlot
from fumehood.orchestrator.judging import JudgeSource, RunJudge
from fumehood.orchestrator.plan import plan_episodes
from fumehood.orchestrator.run import Run, RunLimits, missing
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.orchestrator.stop_signals import StopRequests
from fumehood.records.run_folder import RunFolder
from fumehood.report.statistics.infra import attempts_of
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from fumehood_agent.session import Session
from tests.parts.http import HttpSeat
from tests.parts.installed import installed
from tests.parts.models import CHAT, chat, gateway_settings

installed("bfcl_eval", "mpmath")

EPISODES = 300
HONEST_RATE = 0.417
RESUMES = 3
DIGITS = 10**4_199
Way = Callable[[Session, str], object]
"""Tries to void an attempt; receives the session and the folder of the seat's sockets."""
WORLD_WAYS: tuple[Way, ...] = (
    # The product has more digits than Python writes.
    lambda session, _: session.call("multiply", {"a": DIGITS, "b": DIGITS}),
    lambda session, _: session.call("round_number", {"number": 1, "decimal_places": -(5 * 10**4)}),
    lambda session, _: session.call("logarithm", {"value": DIGITS, "base": 0, "precision": 1_000}),
    lambda session, _: session.call("\\x00" * 200, {"a": [[[]]]}),
)
"""Calls that raise exceptions in the world."""
FAILURES: dict[str, ScriptedReply] = {
    "hang up": ScriptedReply(hangs_up=True),
    **{
        f"status {status}": ScriptedReply(status=status)
        for status in (400, 401, 403, 404, 408, 413, 429, 500, 503, 529)
    },
}
"""Text of a request → how the provider reacts to it, and only to it."""


def _sends(body: str) -> Way:
    def way(_: Session, directory: str) -> None:
        with closing(HttpSeat(directory)) as http:
            http.send(CHAT, body)

    return way


def _asks(text: str, **more: Any) -> Way:
    return _sends(json.dumps(chat(text=text, **more)))


def _leaves_stream(_: Session, directory: str) -> None:
    """Disconnect while a response arrives."""
    with closing(HttpSeat(directory)) as http:
        http.open(CHAT, json.dumps(chat(text="fine", stream=True)))


def _floods(_: Session, directory: str) -> None:
    """Send requests on which the provider hangs up, without reading the responses."""
    seats = [HttpSeat(directory) for _ in range(8)]
    for seat in seats:
        seat.connection.request("POST", CHAT, json.dumps(chat(text="hang up")))
    for seat in seats:
        seat.close()


PROVIDER_WAYS: tuple[Way, ...] = (
    *map(_asks, FAILURES),
    _asks("hang up", model="m-that-the-run-does-not-name"),
    _asks("fine", model="x-that-no-provider-has"),
    _asks("fine", tools=[{"type": "web_search"}]),
    _asks("fine " * 250_000),
    _sends("{" * 9_000),
    _leaves_stream,
    _floods,
)
"""Requests that the provider or the gateway refuses, or that never end."""
pytestmark = pytest.mark.slow


def answer(asked: AskedOfModel) -> ScriptedReply:
    """Answer as a provider that works, but that fails on some requests."""
    if TEXT.encode() in asked.body:
        return ScriptedReply(text="OK")
    text = str(asked.request["messages"][0]["content"])
    return FAILURES.get(text, ScriptedReply(text="fine", pause_s=0.01))


class CoinFlipper:
    """Solves a task with a fixed probability; otherwise it tries to void its attempt."""

    def __init__(self, case: Case, pool: ServicePool) -> None:
        self._case = case
        self._pool = pool
        self._numbers = count()
        self.attempts = 0
        self.ways = dict.fromkeys((*WORLD_WAYS, *PROVIDER_WAYS), 0)

    def attempt(self, spec: EpisodeSpec, plan: EpisodePlan, _: AwaitSlot | None) -> Attempt:
        """Play one attempt, each with a new toss."""
        number = next(self._numbers)
        self.attempts += 1

        def work(session: Session) -> bool:
            self._work(Random(number), session)
            return False

        plan = SessionPlan({spec.seats[0].name: work})
        return attempt_episode(spec, plan, self._pool)

    def _work(self, random: Random, session: Session) -> None:
        if random.random() >= HONEST_RATE:
            way = random.choice(list(self.ways))
            self.ways[way] += 1
            with suppress(OSError, HTTPException):
                way(session, str(Path(session.path).parent))
            return
        for move in self._case.gold.oracle or ():
            if "submit" in move:
                session.submit(str(move["submit"]))
            else:
                session.call(str(move["tool_name"]), move["args"])  # type: ignore[arg-type]


def test_forced_infra_does_not_raise_the_success_rate(tmp_path: Path) -> None:
    case = next(
        case
        for case in Bfcl().load("multi_turn_base").cases
        if "MathAPI" in str(case.task.initial_state["involved_classes"])
    )
    cases = tuple(
        replace(case, task=replace(case.task, task_id=f"multi_turn_base_{number}"))
        for number in range(EPISODES)
    )
    suite = Suite("coins", cases)
    planned = list(plan_episodes(suite, ("coin",), 1, 0))
    folder = RunFolder.create(tmp_path / "run", {"run": "ab", "isolation": "none"}, suite)
    judge = RunJudge(JudgeSource(None, JudgingConfig()), folder.path)
    with ScriptedModels(answer) as models:
        offer = HttpOffer(None, gateway_settings(models, wait_max_s=0.01))
        with ServicePool(1, ServiceOptions(http=offer, worlds=("bfcl",))) as pool:
            coin = CoinFlipper(case, pool)
            run = Run(
                folder,
                coin.attempt,
                lambda _: SessionPlan({}),
                RunLimits(concurrency=2, wall_ms=600_000),
                judge,
                StopRequests(),
                lambda: None,
            )
            for _ in range(1 + RESUMES):
                run.execute(missing(planned, folder.rows()), lambda row: None)
    counted = attempts_of(folder.rows())
    assert (counted.graded, counted.ungraded, counted.infra) == (EPISODES, 0, 0)
    assert coin.attempts == EPISODES
    assert all(coin.ways.values()), "every way was tried"
    margin = 1.96 * sqrt(HONEST_RATE * (1 - HONEST_RATE) / EPISODES)
    assert abs(counted.successes / EPISODES - HONEST_RATE) <= margin
