"""What the boxes of an episode are like: one for the agent, one for each other who has a seat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json
from fumehood.core.task import SCRIPT
from fumehood.engines.engine import Engine, Image, Isolation, Limits, Mount
from fumehood.orchestrator.agents import NamedAgent, is_scaffold
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.episode_runner import BoxPlan, InlinePlan
from fumehood.orchestrator.participants import ORACLE, Cast, Player, is_builtin
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.records.episode_name import file_name
from fumehood.wire.ports import InlineAgent

CALLS_INSIDE = "/agent-data/calls.json"
"""Where an agent that replays a list of calls finds it."""


class BoxPlans:
    """Plans boxes; safe to use from several threads."""

    def __init__(
        self,
        config: RunConfig,
        cast: Cast,
        images: Mapping[str, Image],
        engine: Engine,
        scripts: Path,
        labels: dict[str, str],
    ) -> None:
        """Plan nothing yet.

        Args:
            config: of the run.
            cast: who sits where.
            images: of everybody, by the cast's key.
            engine: that makes the boxes.
            scripts: folder for lists of calls; boxes read in it.
            labels: of every box.
        """
        self._cast = cast
        self._images = images
        self._engine = engine
        self._scripts = scripts
        self._labels = labels
        self._limits = _limits(config)

    def plan(self, one: PlannedEpisode) -> BoxPlan | InlinePlan:
        """Return the plan of an episode's boxes, or of its agents where the engine is inline.

        Raises:
            InputError: an agent that replays moves has none.
        """
        if self._engine.isolation is Isolation.INLINE:
            return self._inline_plan(one)
        tested = self._cast.tested(one.agent)
        first, *rest = one.case.task.seats
        box = self._box(tested, one, first.name)
        if not rest:
            return box
        beside = {seat.name: self._cast.beside(one.case.task, seat.name, tested) for seat in rest}
        others = {seat: self._box(player, one, seat) for seat, player in beside.items() if player}
        return replace(box, others=others)

    def _inline_plan(self, one: PlannedEpisode) -> InlinePlan:
        tested = self._cast.tested(one.agent)
        agents = []
        for number, seat in enumerate(one.case.task.seats):
            beside = self._cast.beside(one.case.task, seat.name, tested) if number else tested
            agent = (beside or tested).agent
            replays = is_builtin(agent, ORACLE) or is_builtin(agent, SCRIPT)
            moves = json.dumps(_calls(agent, one, seat.name)) if replays else ""
            agents.append(InlineAgent(seat.name, agent.source.name, moves))
        return InlinePlan(tuple(agents))

    def _box(self, player: Player, one: PlannedEpisode, seat: str) -> BoxPlan:
        agent = player.agent
        plan = BoxPlan(
            image=self._images[self._cast.key(agent)], limits=self._limits, labels=self._labels
        )
        if is_scaffold(agent):
            return replace(plan, arguments=("--model", str(player.model)))
        if is_builtin(agent, ORACLE) or is_builtin(agent, SCRIPT):
            script = self._write(one, f"{seat}.{agent.source.name}", _calls(agent, one, seat))
            return replace(
                plan, arguments=("--calls", CALLS_INSIDE), mounts=(Mount(script, CALLS_INSIDE),)
            )
        return plan

    def _write(self, one: PlannedEpisode, whose: str, calls: list[dict[str, Json]]) -> Path:
        path = self._scripts / f"{file_name(one.case.task.task_id)}.{one.trial}.{whose}.json"
        path.write_text(json.dumps(calls), encoding="ascii")
        path.chmod(0o644)
        return path


def _calls(agent: NamedAgent, one: PlannedEpisode, seat: str) -> list[dict[str, Json]]:
    task = one.case.task
    if is_builtin(agent, SCRIPT):
        if seat not in task.scripts:
            raise InputError(
                f"the task {task.task_id} has no script for the seat {seat}: name who sits there"
            )
        return [dict(step) for step in task.scripts[seat]]
    if one.case.gold.oracle is None:
        raise InputError(f"the task {task.task_id} has no oracle to replay")
    return moves_of(seat, task.seats[0].name, one.case.gold.oracle)


def moves_of(seat: str, first: str, moves: Iterable[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """Return the moves of one seat; those that name none are the first seat's."""
    mine = (dict(move) for move in moves if move.get("seat", first) == seat)
    return [{key: value for key, value in move.items() if key != "seat"} for move in mine]


def _limits(config: RunConfig) -> Limits:
    limits = config.limits
    return Limits(
        memory_bytes=limits.memory_mb << 20,
        cpus=limits.cpus,
        processes=limits.processes,
        tmp_bytes=limits.tmp_mb << 20,
        output_bytes=limits.output_kb << 10,
    )
