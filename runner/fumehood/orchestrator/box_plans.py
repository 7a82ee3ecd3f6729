"""Plans the boxes of an episode: one for the tested agent and one for each counterpart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json
from fumehood.core.task import SCRIPT, Case, Task
from fumehood.engines.engine import AgentSource, BoxStarter, Image, Limits, Mount
from fumehood.orchestrator.agents import NamedAgent, Participants, is_builtin, is_scaffold
from fumehood.orchestrator.config import BoxLimits, ModelsConfig
from fumehood.orchestrator.episode_runner import BoxPlan, InlinePlan
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.workspaces.plans import WorkspacePlan
from fumehood.records.row import file_name
from fumehood.scorers.verdict import WORKSPACE
from fumehood.wire.ports import InlineAgent
from fumehood_agent.builtin import MANNERS, REPLAYING
from fumehood_agent.scaffolds.table import LEADERS

SOLUTION = "solution/solve.sh"
"""The script of a Harbor task, or of one of its steps, that its oracle runs."""
CALLS_INSIDE = "/agent-data/calls.json"
"""Path in the box of the calls that an agent replays, or the procedure that it carries out."""


class BoxPlans:
    """Plans boxes; safe to use from several threads."""

    def __init__(
        self,
        participants: Participants,
        images: Mapping[AgentSource, Image],
        engine: BoxStarter,
        limits: BoxLimits,
        calls_folder: Path,
        labels: dict[str, str],
        models: ModelsConfig | None = None,
        workspace: Callable[[Case], WorkspacePlan | None] = lambda _: None,
        *,
        is_inline: bool = False,
        keep_workspaces: Path | None = None,
    ) -> None:
        """Plan nothing yet.

        Args:
            participants: which agent takes which seat.
            images: prepared images of all participants.
            engine: starts the boxes.
            limits: of each box.
            calls_folder: folder for lists of calls; boxes read files in it.
            labels: set on every box.
            models: with the parameters of the models that scaffolds call.
            workspace: returns the plan of a task's workspace; None for a task without one.
            is_inline: whether agents play inside the services, without boxes.
            keep_workspaces: folder for the checkpoints of workspaces; None keeps none.
        """
        self._keep_workspaces = keep_workspaces
        self._workspace = workspace
        self._is_inline = is_inline
        self._models = models
        self._participants = participants
        self._images = images
        self._engine = engine
        self._limits = engine_limits(limits)
        self._calls_folder = calls_folder
        self._labels = labels

    def plan(self, planned: PlannedEpisode) -> BoxPlan | InlinePlan:
        """Return the plan of an episode's boxes, or of its agents if the engine is inline.

        Raises:
            InputError: an agent that replays calls has no list of calls.
        """
        task = planned.case.task
        tested = self._participants.tested(planned.agent)
        counterparts = self._participants.counterparts(task, tested)
        if self._is_inline:
            agents = {seat.name: counterparts.get(seat.name, tested) for seat in task.seats}
            return InlinePlan(
                tuple(_inline(agent, planned, seat) for seat, agent in agents.items()),
                frozenset(counterparts),
            )
        workspace = self._workspace(planned.case)
        if workspace is not None and self._keep_workspaces is not None:
            kept = self._keep_workspaces / planned.name.checkpoint_path
            workspace = replace(workspace, kept=kept)
        if workspace is not None and tested.source in workspace.inside:
            return self._inside(workspace, workspace.inside[tested.source])
        plan = self._box(tested, planned, task.seats[0].name)
        others = {seat: self._box(agent, planned, seat) for seat, agent in counterparts.items()}
        return replace(plan, counterparts=others, workspace=workspace)

    def _inside(self, workspace: WorkspacePlan, image: Image) -> BoxPlan:
        """Return the plan of one box for an agent and its workspace."""
        return BoxPlan(
            engine=self._engine,
            image=image,
            limits=replace(workspace.limits, output_bytes=self._limits.output_bytes),
            labels=self._labels,
            workspace=replace(workspace, agent=image),
        )

    def _box(self, agent: NamedAgent, planned: PlannedEpisode, seat: str) -> BoxPlan:
        plan = BoxPlan(
            engine=self._engine,
            image=agent.started_in(self._images[agent.source]),
            limits=self._limits,
            labels=self._labels,
        )
        if is_scaffold(agent):
            model = str(agent.model)
            changed = self._models.parameters_of(model).changed() if self._models else {}
            further = ("--model-settings", json.dumps(changed)) if changed else ()
            members = _members(planned.case.task, seat) if agent.source.name in LEADERS else []
            if members:
                further = (*further, "--arguments", json.dumps({"members": members}))
            return replace(plan, arguments=("--model", model, *further))
        if _replays(agent):
            name = f"{seat}.{agent.source.name}"
            file = self._write(planned, name, _calls(agent, planned, seat))
            return replace(
                plan, arguments=("--calls", CALLS_INSIDE), mounts=(Mount(file, CALLS_INSIDE),)
            )
        if agent.arguments and not agent.speaks_acp:
            return replace(plan, arguments=("--arguments", json.dumps(agent.arguments)))
        return plan

    def _write(
        self,
        planned: PlannedEpisode,
        name: str,
        calls: list[dict[str, Json]] | dict[str, Json],
    ) -> Path:
        task = file_name(planned.case.task.task_id)
        path = self._calls_folder / f"{task}.{planned.trial}.{name}.json"
        path.write_text(json.dumps(calls), encoding="ascii")
        path.chmod(0o644)
        return path


def check_moves(participants: Participants, episodes: Iterable[PlannedEpisode]) -> None:
    """Raise InputError if a tested agent that replays calls has none for one of the tasks."""
    for planned in episodes:
        tested = participants.tested(planned.agent)
        if _replays(tested):
            _calls(tested, planned, planned.case.task.seats[0].name)


def _inline(agent: NamedAgent, planned: PlannedEpisode, seat: str) -> InlineAgent:
    moves = json.dumps(_calls(agent, planned, seat)) if _replays(agent) else ""
    return InlineAgent(seat, agent.source.name, moves)


def _replays(agent: NamedAgent) -> bool:
    return any(is_builtin(agent, name) for name in REPLAYING)


def _calls(
    agent: NamedAgent, planned: PlannedEpisode, seat: str
) -> list[dict[str, Json]] | dict[str, Json]:
    """Return the moves that an agent replays, or the procedure that it carries out."""
    task, gold = planned.case.task, planned.case.gold
    if any(is_builtin(agent, name) for name in MANNERS):
        if gold.procedure is None:
            raise InputError(
                f"the task {task.task_id} has no `procedure` for {agent.source.name}: run a safety "
                "suite, write a procedure (documentation page 'Safety suites'), or choose another "
                "agent"
            )
        return dict(gold.procedure)
    if is_builtin(agent, SCRIPT):
        if seat not in task.scripts:
            raise InputError(
                f"the task {task.task_id} has no script for the seat {seat}: "
                f"choose an agent with --seat {seat}=AGENT"
            )
        return [dict(step) for step in task.scripts[seat]]
    if gold.oracle is None:
        raise InputError(f"the task {task.task_id} has no oracle to replay{_missing_file(gold)}")
    return moves_of(seat, task.seats[0].name, gold.oracle)


def _missing_file(gold: Gold) -> str:
    """Return which file of a Harbor task its oracle lacks, and what to do; empty for others."""
    settings = cast("Mapping[str, Any]", gold.criterion(WORKSPACE) or {})
    folder = Path(str(settings.get("folder", "")))
    if not (folder / "task.toml").is_file():
        return ""
    files = [f"steps/{step['name']}/{SOLUTION}" for step in settings.get("steps", ())]
    missing = next((file for file in files if not (folder / file).is_file()), SOLUTION)
    return f": {folder} has no {missing}; add it, or select other tasks with --task"


def moves_of(seat: str, first: str, moves: Iterable[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """Return the moves of one seat; moves without a seat belong to the first seat."""
    own_moves = (dict(move) for move in moves if move.get("seat", first) == seat)
    return [{key: value for key, value in move.items() if key != "seat"} for move in own_moves]


def _members(task: Task, seat: str) -> list[str]:
    """Return the seats to which a seat gives orders."""
    settings = task.conversation.settings if task.conversation else {}
    if settings.get("head") == seat:
        return [other.name for other in task.seats if other.name != seat]
    parents = settings.get("parents")
    return [
        name
        for name, above in (parents.items() if isinstance(parents, dict) else ())
        if above == seat
    ]


def engine_limits(limits: BoxLimits) -> Limits:
    """Return the limits of a box in the units of engines."""
    return Limits(
        memory_bytes=limits.memory_mb << 20,
        cpus=limits.cpus,
        processes=limits.processes,
        tmp_bytes=limits.tmp_mb << 20,
        output_bytes=limits.output_kb << 10,
    )
