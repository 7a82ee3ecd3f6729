"""Replays recorded episodes in memory, through a service or in boxes, and compares them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import FumehoodError as RunnerError
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.evidence import AnsweredCall, Evidence, read_evidence
from fumehood.core.json_values import copy_object
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Infra, InfraKind, OutOfBudget, SeatEnd
from fumehood.core.task import Case
from fumehood.core.tools import FailureKind
from fumehood.core.trace import Record, verify_chain
from fumehood.engines.engine import AgentKind, AgentSource, Image, Limits, Mount
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.episode_runner import (
    BoxPlan,
    EpisodePlan,
    SessionPlan,
    attempt_episode,
)
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.replay import first_difference
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.records.row import file_name
from fumehood.scorers.registry import score_evidence
from fumehood.service.inline import play_in_process
from fumehood.service.open_episode import MonotonicClock
from fumehood.service.seat_endpoint import SeatLimits
from fumehood_agent.adapter import work
from fumehood_agent.errors import Ended, FumehoodError, NotAnAction
from fumehood_agent.loading import load_agent
from fumehood_agent.seat import Failure, Reply, Seat, Value
from tests.golden.recorded import RecordedEpisode

WALL_MS = 60_000
CALLS_INSIDE = "/agent-data/calls.json"

Play = Callable[[RecordedEpisode], Mapping[str, Any]]
"""Plays a recorded episode and returns what happened, in the recorded form."""


def difference(episode: RecordedEpisode, play: Play) -> str | None:
    """Play a recorded episode; return the first difference, None without one.

    An input on which the reference failed passes when it is answered or rejected with a typed
    error.
    """
    try:
        actual = play(episode)
    except (RunnerError, FumehoodError) as error:
        return None if episode.expect is None else f"{type(error).__name__}: {error}"
    if episode.expect is None:
        return None
    expected = {key: value for key, value in episode.expect.items() if key in actual}
    return first_difference(expected, {key: actual[key] for key in expected})


def play_in_core(episode: RecordedEpisode) -> Mapping[str, Any]:
    """Play in this process, without sockets."""
    case = episode.case()
    spec, worker = _spec(episode, case), _Worker(episode)
    played = play_in_process(spec, {spec.seats[0].name: worker}, MonotonicClock(), SeatLimits())
    if played.rejected is not None:
        raise SpecError(played.rejected.field, played.rejected.reason)
    return worker.result(case, played.records)


def play_over_wire(pool: ServicePool) -> Play:
    """Return a player that uses sessions with the services of a pool."""

    def play(episode: RecordedEpisode) -> Mapping[str, Any]:
        case, worker = episode.case(), _Worker(episode)
        spec = _spec(episode, case)
        records = _attempt(spec, SessionPlan({spec.seats[0].name: worker}), pool)
        return worker.result(case, records)

    return play


@contextmanager
def playing_in_boxes(engine_name: str, pool: ServicePool) -> Iterator[Play]:
    """Yield a player that starts a box for each episode. Observations are not compared here.

    Raises:
        InputError: the engine is not ready.
    """
    engine = choose_engine(engine_name).engine

    @cache
    def image(agent: str) -> Image:
        return engine.prepare(AgentSource(AgentKind.BUILTIN, agent))

    def play(episode: RecordedEpisode) -> Mapping[str, Any]:
        case = episode.case()
        script = Path(scripts) / f"{file_name(episode.name)}.json"
        script.write_text(json.dumps([*episode.moves, {"submit": ""}]), encoding="ascii")
        script.chmod(0o644)
        is_list = episode.agent is None
        plan = BoxPlan(
            engine=engine,
            image=image(episode.agent or "oracle"),
            limits=Limits(),
            arguments=("--calls", CALLS_INSIDE) if is_list else (),
            mounts=(Mount(script, CALLS_INSIDE),) if is_list else (),
            labels=owner_labels("recorded episodes"),
        )
        return _result(case, _evidence(_attempt(_spec(episode, case), plan, pool)))

    try:
        with tempfile.TemporaryDirectory(prefix="") as scripts:
            Path(scripts).chmod(0o755)
            yield play
    finally:
        engine.close()


class _Worker:
    """Plays at a seat and keeps what the agent observes."""

    def __init__(self, episode: RecordedEpisode) -> None:
        self._episode = episode
        self._observations: list[Mapping[str, Any]] = []
        self._error: FumehoodError | None = None

    def __call__(self, seat: Seat) -> bool:
        try:
            self._play(_ObservedSeat(seat, self._observations))
        except FumehoodError as error:
            self._error = error
        return False

    def result(self, case: Case, records: tuple[Record, ...]) -> Mapping[str, Any]:
        """Return what happened; raise the error that ended the work, if one did."""
        if self._error is not None:
            raise self._error
        return {**_result(case, _evidence(records)), "observations": self._observations}

    def _play(self, seat: Seat) -> None:
        if self._episode.agent is not None:
            work(load_agent(f"builtin:{self._episode.agent}"), seat)
            return
        for move in self._episode.moves:
            name, arguments = move["tool_name"], move["args"]
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise NotAnAction(move)
            try:
                reply = seat.call(name, copy_object(arguments))
            except Ended:
                return
            if reply.ended:
                return
        seat.submit()


class _ObservedSeat:
    """A seat that records what an agent observes after each call."""

    def __init__(self, seat: Seat, observations: list[Mapping[str, Any]]) -> None:
        self._seat = seat
        self._observations = observations
        self.submit = seat.submit
        self.give_up = seat.give_up

    @property
    def task(self) -> Any:
        return self._seat.task

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        reply = self._seat.call(name, arguments)
        self._observations.append(_observation(reply))
        return reply


def _spec(episode: RecordedEpisode, case: Case) -> EpisodeSpec:
    return PlannedEpisode(episode.name, case, 0, case.task.seed).to_spec(WALL_MS)


def _attempt(spec: EpisodeSpec, plan: EpisodePlan, pool: ServicePool) -> tuple[Record, ...]:
    attempt = attempt_episode(spec, plan, pool)
    match attempt.infra:
        case Infra(InfraKind.TASK, detail):
            raise SpecError("task", detail)
        case Infra(_, detail):
            raise InfraError(detail)
    return attempt.records


def _evidence(records: tuple[Record, ...]) -> Evidence:
    verify_chain(records)
    return read_evidence(json.loads(record.event_json) for record in records)


def _result(case: Case, evidence: Evidence) -> dict[str, Any]:
    score = score_evidence(case.task, case.gold, evidence)
    return {
        "steps": [_step(call) for call in evidence.calls],
        "transcript": [transcribed(call) for call in evidence.calls],
        "final_state": evidence.final_state,
        "success": score.success,
        "checks": dict(score.checks),
        "metrics": dict(score.metrics),
        "actions": [
            {"tool_name": call.tool_name, "args": dict(call.sent)} for call in evidence.calls
        ],
        "end": _end(evidence.ends.get(case.task.seats[0].name)),
    }


def transcribed(call: AnsweredCall) -> dict[str, Any]:
    """Return the call as ToolMisuseBench writes it, with the arguments after all faults."""
    return {
        "tool_name": call.tool_name,
        "args": dict(call.arguments_after),
        "output": call.output,
        "error": None if call.failure is None else call.failure.to_json(),
    }


def _step(call: AnsweredCall) -> dict[str, Any]:
    failure = call.failure
    return {
        "output": call.output,
        "error": None if failure is None else failure.to_json(),
        "terminated": failure is not None and failure.kind is FailureKind.OUT_OF_BUDGET,
    }


def _end(end: SeatEnd | None) -> str:
    match end:
        case OutOfBudget(BudgetKind.STEPS):
            return "max_steps"
        case OutOfBudget():
            return "terminated"
        case _:
            return "no_action"


def _observation(reply: Reply) -> dict[str, Any]:
    left = reply.remaining
    match reply.result:
        case Failure(code, message, details):
            error: Any = {"code": code, "message": message, "details": details}
        case Value():
            error = None
    return {
        "remaining_budget": {
            "steps_left": left.get("steps"),
            "tool_calls_left": left.get("calls"),
            "retries_left": left.get("retries"),
        },
        "last_error": error,
    }
