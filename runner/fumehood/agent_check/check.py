"""Runs an agent on robustness cases or protocol cases, each in a separate box."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Self, TypeVar

from fumehood.agent_check.cases import (
    CheckCase,
    ProtocolCase,
    RobustnessCase,
    load_protocol_cases,
    load_robustness_cases,
    robustness_tools,
)
from fumehood.agent_check.evaluation import differences, evidence_of, lingered, problems
from fumehood.agent_check.stub_model import NAME as MODEL
from fumehood.agent_check.stub_model import gateway_settings, stub_model
from fumehood.core.episode_spec import ONLY_SEAT, EpisodeSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.outcome import outcome_name
from fumehood.engines.engine import Engine, EngineOptions, Image, Limits
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.agents import is_scaffold, name_agents
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.service_pool import ServiceOptions, ServicePool, http_offer
from fumehood.orchestrator.trace_receiver import GRACE_S

C = TypeVar("C", bound=CheckCase)

CONCURRENCY = 2
"""Boxes that run at the same time."""
PROTOCOL_GRACE_S = 30.0
"""Long, because the agents of protocol cases call tools and print after the end of their work."""


class Verdict(Enum):
    """The result of a case."""

    HOLDS = "ok"
    FAILS = "failed"
    NOT_REACHED = "not reached"
    """The agent did not reach the situation, so nothing was tested."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one case."""

    name: str
    behaviour: str
    verdict: Verdict
    detail: str
    """What went wrong, or how the episode ended. One line."""
    wall_ms: int
    """Including the start of the box."""


class Check:
    """One agent on one engine."""

    def __init__(
        self,
        engine: Engine,
        image: Image,
        pool: ServicePool,
        wall_ms: int,
        arguments: tuple[str, ...] = (),
    ) -> None:
        """Create the checker; it starts nothing.

        Args:
            engine: starts the boxes.
            image: of the boxes.
            pool: of service workers.
            wall_ms: wall time budget of each case.
            arguments: of the agent.
        """
        labels = owner_labels("check")
        self._plan = BoxPlan(
            engine=engine, image=image, limits=Limits(), arguments=arguments, labels=labels
        )
        self._pool = pool
        self._wall_ms = wall_ms

    @classmethod
    @contextmanager
    def of(
        cls,
        agent: str,
        engine: str,
        options: EngineOptions,
        wall_ms: int,
        progress: Callable[[str], None],
    ) -> Iterator[Self]:
        """Prepare the agent, the engine, a stub model and a service.

        Args:
            agent: in the notation of ``fumehood run --agent``.
            engine: a name, or ``auto``.
            options: of the engine.
            wall_ms: wall time budget of each case.
            progress: receives a line when something takes long.

        Raises:
            InputError: the agent or the engine cannot be used.
            InfraError: the engine or the service does not start.
        """
        (named,) = name_agents([agent])
        with ExitStack() as stack:
            options = replace(options, archives=named.source.is_archive)
            chosen = choose_engine(engine, options).engine
            stack.callback(chosen.close)
            image = named.started_in(chosen.prepare(named.source))
            models = gateway_settings(stack.enter_context(stub_model(robustness_tools())))
            pool = stack.enter_context(
                ServicePool(1, ServiceOptions(http=http_offer([named], models, progress)))
            )
            arguments = ("--model", MODEL) if is_scaffold(named) else ()
            yield cls(chosen, image, pool, wall_ms, arguments)

    def robustness(self, names: Sequence[str] = ()) -> Iterator[Finding]:
        """Run the named robustness cases, by default all, and evaluate the behaviour from outside.

        Raises:
            InputError: the agent's box cannot be started.
            InfraError: the infrastructure failed.
        """
        return self._each(_selected(load_robustness_cases(), names), self._robustness_case)

    def protocol(self, names: Sequence[str] = ()) -> Iterator[Finding]:
        """Run the named protocol cases, by default all, and compare the agent's observations.

        Raises:
            InputError: the agent's box cannot be started.
            InfraError: the infrastructure failed.
        """
        return self._each(_selected(load_protocol_cases(), names), self._protocol_case)

    def play(self, spec: EpisodeSpec) -> Attempt:
        """Run one episode of the agent in a box.

        Raises:
            InputError: the box cannot be started.
            InfraError: the infrastructure failed.
        """
        return self._play(spec, GRACE_S)

    def _play(self, spec: EpisodeSpec, grace_s: float) -> Attempt:
        attempt = attempt_episode(spec, replace(self._plan, grace_s=grace_s), self._pool)
        if attempt.infra is not None:
            raise InfraError(f"{attempt.infra.kind.value}: {attempt.infra.detail}")
        return attempt

    def _each(self, cases: Sequence[C], run: Callable[[C], Finding]) -> Iterator[Finding]:
        with ThreadPoolExecutor(CONCURRENCY) as threads:
            yield from threads.map(run, cases)

    def _robustness_case(self, case: RobustnessCase) -> Finding:
        attempt = self.play(case.spec(self._wall_ms))
        evidence = evidence_of(attempt)
        problem = "; ".join(problems(attempt, evidence))
        if problem:
            return _finding(case, Verdict.FAILS, problem, attempt)
        if not case.is_reached(evidence):
            return _finding(case, Verdict.NOT_REACHED, case.requires.value, attempt)
        calls = len(evidence.calls)
        detail = (
            f"{outcome_name(evidence.ends[ONLY_SEAT])}, {calls} {'call' if calls == 1 else 'calls'}"
        )
        if lingered(attempt):
            detail += f"; it ran for {GRACE_S:.0f} s after the end of the episode and was stopped"
        return _finding(case, Verdict.HOLDS, detail, attempt)

    def _protocol_case(self, case: ProtocolCase) -> Finding:
        attempt = self._play(case.spec(self._wall_ms), PROTOCOL_GRACE_S)
        problem = "; ".join(differences(case, attempt))
        if problem:
            return _finding(case, Verdict.FAILS, problem, attempt)
        return _finding(case, Verdict.HOLDS, "as expected", attempt)


def _selected(cases: Sequence[C], names: Sequence[str]) -> Sequence[C]:
    by_name = {case.name: case for case in cases}
    for name in names:
        if name not in by_name:
            raise InputError(f"there is no case {name!r}; cases: {', '.join(by_name)}")
    return [by_name[name] for name in names] or cases


def _finding(case: CheckCase, verdict: Verdict, detail: str, attempt: Attempt) -> Finding:
    return Finding(case.name, case.behaviour, verdict, detail, attempt.wall_ms)
