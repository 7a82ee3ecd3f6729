"""Validates a run before anything starts: configuration, suite, agents, plan, models and judge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fumehood.benchmarks.registry import load_suite
from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.errors import InputError
from fumehood.core.ledger import BudgetKind, ChargedBy
from fumehood.core.task import Suite
from fumehood.core.teams import with_team
from fumehood.gateway.settings import GatewaySettings
from fumehood.orchestrator.added_faults import NONE as NO_FAULTS
from fumehood.orchestrator.added_faults import with_faults
from fumehood.orchestrator.agents import Participants
from fumehood.orchestrator.box_plans import check_moves
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.data_source import resolve_config
from fumehood.orchestrator.judging import JudgeSource, judge_source, judging_model
from fumehood.orchestrator.model_probe import ProbedRun, probe_models, tools_of
from fumehood.orchestrator.models import bounded, check_scaffolds, gateway_settings
from fumehood.orchestrator.monitors import (
    check_tools,
    monitor_specs,
    with_absolute_paths,
)
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.orchestrator.run_plan import config_of, episodes_of, instructions_of
from fumehood.orchestrator.task_changes import selected, with_budget, with_counterparts
from fumehood.orchestrator.workspaces.checkpoints import check_can_be_kept, with_checkpoint
from fumehood.orchestrator.workspaces.plans import (
    check_shared_score,
    is_inside,
    why_not_inside,
)
from fumehood.records.run_reader import RunReader
from fumehood.records.seals import Signing
from fumehood.records.signing_key import user_key


@dataclass(frozen=True)
class RunSetup:
    """The parts of a run. Created once; launching and resuming read it."""

    config: RunConfig
    """Configuration with absolute paths and with the snapshot of the suite."""
    suite: Suite
    """The selected tasks, with the faults and budgets of the configuration."""
    participants: Participants
    episodes: tuple[PlannedEpisode, ...]
    """Every episode of the run or its shard, in the order of the plan."""

    @classmethod
    def create(cls, config: RunConfig) -> RunSetup:
        """Load the suite of a configuration and plan the run.

        Raises:
            InputError: the suite, a path, an agent or a seat of the configuration cannot be used.
        """
        suite = selected(load_suite(config.suite, config.snapshot), config.tasks)
        if config.team is None:
            # Workers with another agent belong to the team.
            suite = with_counterparts(suite, config.seats)
        suite = with_checkpoint(suite, config.from_workspace)
        suite = with_budget(
            with_faults(suite, config.faults, config.fault_intensity), config.budget
        )
        instructions_of(config).check(
            suite, config.trials, reword_published=config.reword_published
        )
        if config.shared_score:
            check_shared_score(suite.cases)
        if config.keep_workspaces is not None:
            check_can_be_kept(suite)
        if config.team is not None:
            suite = with_team(suite, config.team.workers)
        setup = cls._plan(with_absolute_paths(resolve_config(config, suite)), suite)
        setup.participants.check_model(config.models)
        _check_inside(setup)
        return setup

    @classmethod
    def of_run(cls, run: RunReader) -> RunSetup:
        """Return the setup of an existing run, which contains its configuration and its suite.

        Raises:
            InputError: its plan cannot be read, or an agent that it names no longer exists.
        """
        return cls._plan(config_of(run), run.suite())

    @classmethod
    def _plan(cls, config: RunConfig, suite: Suite) -> RunSetup:
        participants = Participants(config, suite)
        labels = [agent.label for agent in participants.agents]
        episodes = episodes_of(config, suite, labels)
        return cls(config, suite, participants, episodes)

    @cached_property
    def gateway(self) -> GatewaySettings | None:
        """Settings of the model gateway, keys included; None if the run has no models.

        Raises:
            InputError: a key is not set, a file is missing, or a scaffold has no usable model.
        """
        gateway = None
        if self.config.models is not None:
            gateway = gateway_settings(
                self.config.models,
                self.participants.models(),
                self.config.service_workers,
                judging_model(self.config),
                self.config.shards,
            )
        check_scaffolds(self.participants, self.config.models, gateway)
        return gateway

    @cached_property
    def monitors(self) -> tuple[MonitorSpec, ...]:
        """The monitors of the run.

        Raises:
            InputError: one cannot be read, or a rule names an unknown tool.
        """
        specs = monitor_specs(self.config)
        check_tools(specs, self.suite, self.config)
        return specs

    @cached_property
    def judge(self) -> JudgeSource:
        """The judge of criteria that no rule decides.

        Raises:
            InputError: the judge is unknown, or its key is not set.
        """
        return judge_source(self.config, live=True)

    def check(self, *, probe: bool = True) -> None:
        """Read keys and prices, so that an unusable one is found early, and the moves of agents
        that replay them.

        Args:
            probe: whether to ask each model once, too.

        Raises:
            InputError: see :attr:`gateway`, :attr:`judge`, :func:`check_moves` and
                :func:`probe_models`.
        """
        _ = self.gateway, self.judge, self.monitors
        check_moves(self.participants, self.episodes)
        if probe:
            probe_models([self.probed()])

    def tasks_of_idle_workers(self) -> list[str]:
        """Return the tasks whose budget is too small to give each worker of the team a share."""
        if self.config.team is None:
            return []
        tasks = []
        for planned in self.episodes:
            spec = planned.to_spec(0)
            if self.config.models is not None:
                spec = bounded(spec, self.config.models, has_team=True)
            # The supervisor gets the remainder, so a bound of 0 was 0 for one agent, too.
            head, worker = spec.seats[0].budget, spec.seats[-1].budget
            kinds = set(worker.limits) - {BudgetKind.RETRIES}
            if any(worker[kind] == 0 and head[kind] for kind in kinds):
                tasks.append(planned.name.task)
        return list(dict.fromkeys(tasks))

    def probed(self) -> ProbedRun:
        """Return what the run asks its models."""
        agents = self.participants.with_models()
        tools = tools_of(self.suite.cases[0].task) if agents and self.suite.cases else ()
        return ProbedRun(agents, self.config.models, self.gateway, tools)

    def signing(self) -> Signing:
        """Return this user's key and the planned episodes, which the run's seal names.

        Raises:
            InputError: the key cannot be read.
        """
        return Signing(user_key(), tuple(planned.name for planned in self.episodes))


def _check_inside(setup: RunSetup) -> None:
    """Refuse what cannot work with an agent that runs inside its workspace.

    Raises:
        InputError: a setting that concerns calls of tools, a task without a workspace, or a seat
            that has no workspace.
    """
    config = setup.config
    inside = [agent.label for agent in setup.participants.all() if is_inside(agent.source)]
    if not inside:
        return
    who = f"the agent {inside[0]} runs inside the workspace"
    for case in setup.suite.cases:
        if reason := why_not_inside(case):
            raise InputError(
                f"{who}, which the task {case.task.task_id} does not permit: {reason}; name "
                "another agent"
            )
    if config.shared_score:
        raise InputError(
            f"{who}, which ends with it, so no tests can run there: remove --shared-score"
        )
    budget = config.budget.changes() if config.budget else {}
    of_calls = {kind.value for kind in BudgetKind if kind.charged_by is ChargedBy.CALL}
    limits = [name for name in budget if name in {*of_calls, "scale"}]
    settings = {
        "--faults": config.faults not in (None, NO_FAULTS),
        "--monitor": config.monitors,
        "team": config.team,
        f"budget.{next(iter(limits), '')}": limits,
    }
    for name, is_set in settings.items():
        if is_set:
            raise InputError(
                f"{name} has no effect on {inside[0]}: {who.removeprefix('the agent ')}, and calls "
                "no tools; remove it, or name another agent"
            )
