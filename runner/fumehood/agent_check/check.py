"""One agent under every condition, or against every vector, each in a box of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Self, TypeVar

from fumehood.agent_check.judging import differences, evidence_of, lingered, misconduct
from fumehood.agent_check.protocol_case import Vector, load_vectors
from fumehood.agent_check.robustness_case import Condition, load_conditions, tools_of_conditions
from fumehood.agent_check.scene import Scene
from fumehood.agent_check.stand_in import NAME as MODEL
from fumehood.agent_check.stand_in import leading_to, stand_in
from fumehood.core.episode_spec import ONLY_SEAT, EpisodeSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.outcome import outcome_name
from fumehood.engines.engine import Engine, EngineOptions, Image, Limits
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.agents import is_scaffold, name_agents
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.second_sockets import http_offer
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.orchestrator.trace_receiver import GRACE_S

S = TypeVar("S", bound=Scene)

AT_ONCE = 2
"""Boxes."""


class Verdict(Enum):
    """How it went."""

    HOLDS = "ok"
    FAILS = "failed"
    NOT_MET = "not met"
    """The agent did nothing that would have brought it about, so nothing is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one scene."""

    name: str
    behaviour: str
    verdict: Verdict
    detail: str
    """What went wrong, or how the work ended. One line."""
    wall_ms: int
    """The start of the box included."""


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
        """Start nothing yet.

        Args:
            engine: makes the boxes.
            image: what they are started from.
            pool: lends the service.
            wall_ms: for each scene, milliseconds.
            arguments: for the agent.
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
        """Prepare whatever the agent's boxes need.

        Args:
            agent: as ``fumehood run --agent`` takes it.
            engine: its name, or ``auto``.
            options: of the engine.
            wall_ms: for each scene, milliseconds.
            progress: told, in one line, of what takes long.

        Raises:
            InputError: the agent or the engine cannot be used.
            InfraError: the engine or the service does not come up.
        """
        (named,) = name_agents([agent])
        with ExitStack() as stack:
            chosen = choose_engine(engine, options).engine
            stack.callback(chosen.close)
            image = chosen.prepare(named.source)
            models = leading_to(stack.enter_context(stand_in(tools_of_conditions())))
            pool = stack.enter_context(ServicePool(1, http_offer([named], models, progress)))
            asks = ("--model", MODEL) if is_scaffold(named) else ()
            yield cls(chosen, image, pool, wall_ms, asks)

    def under_conditions(self, names: Sequence[str] = ()) -> Iterator[Finding]:
        """Put the agent under conditions and look at it from outside.

        Args:
            names: of those to try; none means all.

        Raises:
            InputError: the agent's box cannot be started.
            InfraError: something failed on our side.
        """
        return self._each(_chosen(load_conditions(), names), self._condition)

    def by_scripts(self, names: Sequence[str] = ()) -> Iterator[Finding]:
        """Let an agent that carries scripts out do so, and compare what it observes.

        Args:
            names: of the vectors; none means all.

        Raises:
            InputError: the agent's box cannot be started.
            InfraError: something failed on our side.
        """
        return self._each(_chosen(load_vectors(), names), self._vector)

    def play(self, spec: EpisodeSpec) -> Attempt:
        """Let the agent work in a box.

        Raises:
            InputError: its box cannot be started.
            InfraError: something failed on our side.
        """
        attempt = attempt_episode(spec, self._plan, self._pool)
        if attempt.infra is not None:
            raise InfraError(f"{attempt.infra.what.value}: {attempt.infra.detail}")
        return attempt

    def _each(self, scenes: Sequence[S], look: Callable[[S], Finding]) -> Iterator[Finding]:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            yield from threads.map(look, scenes)

    def _condition(self, condition: Condition) -> Finding:
        attempt = self.play(condition.spec(self._wall_ms))
        evidence = evidence_of(attempt)
        wrong = "; ".join(misconduct(attempt, evidence))
        if wrong:
            return _finding(condition, Verdict.FAILS, wrong, attempt)
        if not condition.is_met(evidence):
            return _finding(condition, Verdict.NOT_MET, condition.met.value, attempt)
        calls = len(evidence.exchanges)
        how = (
            f"{outcome_name(evidence.ends[ONLY_SEAT])}, {calls} {'call' if calls == 1 else 'calls'}"
        )
        if lingered(attempt):
            how += f"; it went on for {GRACE_S:.0f} s after its work had ended, and was stopped"
        return _finding(condition, Verdict.HOLDS, how, attempt)

    def _vector(self, vector: Vector) -> Finding:
        attempt = self.play(vector.spec(self._wall_ms))
        wrong = "; ".join(differences(vector, attempt))
        if wrong:
            return _finding(vector, Verdict.FAILS, wrong, attempt)
        return _finding(vector, Verdict.HOLDS, "as it has to be", attempt)


def _chosen(scenes: Sequence[S], names: Sequence[str]) -> Sequence[S]:
    by_name = {scene.name: scene for scene in scenes}
    for name in names:
        if name not in by_name:
            raise InputError(
                f"nothing to check is called {name!r}; there are: {', '.join(by_name)}"
            )
    return [by_name[name] for name in names] or scenes


def _finding(scene: Scene, verdict: Verdict, detail: str, attempt: Attempt) -> Finding:
    return Finding(scene.name, scene.behaviour, verdict, detail, attempt.wall_ms)
