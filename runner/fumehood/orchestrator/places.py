"""The places where the episodes of a run are played: this machine, or the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.task import Case
from fumehood.engines.engine import AgentSource, BoxStarter, Image, Isolation
from fumehood.engines.ownership import owner_labels
from fumehood.engines.records import owned_folder
from fumehood.orchestrator.box_plans import BoxPlans
from fumehood.orchestrator.config import HERE
from fumehood.orchestrator.data_source import create_recording_folder
from fumehood.orchestrator.episode_runner import EpisodeRunner
from fumehood.orchestrator.judging import judging_model
from fumehood.orchestrator.machine import Machine, Needs, prepared_machine
from fumehood.orchestrator.models import ModelRun
from fumehood.orchestrator.monitors import PERSON
from fumehood.orchestrator.node_messages import source_name
from fumehood.orchestrator.nodes import Nodes, NodeStarter, node_settings
from fumehood.orchestrator.person import Person
from fumehood.orchestrator.ray_cluster import ray_cluster
from fumehood.orchestrator.run import EpisodePlanner
from fumehood.orchestrator.setup import RunSetup
from fumehood.orchestrator.workspaces.plans import WORLD, WorkspacePlan, Workspaces, is_inside


@dataclass(frozen=True, slots=True)
class Playing:
    """How the episodes of a run are played."""

    runner: EpisodeRunner
    plan: EpisodePlanner
    abandon: Callable[[], None]
    """Fails every running episode at once."""


class Here:
    """This machine."""

    def __init__(self, setup: RunSetup, machine: Machine, workspaces: Workspaces) -> None:
        """Create it.

        Args:
            setup: of the run.
            machine: ready.
            workspaces: the images of workspaces.
        """
        self._setup = setup
        self._machine = machine
        self._workspaces = workspaces
        self.reason = machine.chosen.reason
        """One line: which engine, and why it was chosen."""
        self.images = machine.images
        """The images of all participants."""
        self.isolation = machine.chosen.engine.isolation.value
        """Name of the isolation of boxes."""
        self.is_inline = machine.is_inline
        """Whether agents play inside the services."""
        self.at_once = setup.config.concurrency
        """Episodes, or groups of short ones, that are played at once."""
        self.prepared = setup.config.prepare
        """Further episodes whose boxes are started in advance."""

    def facts(self) -> JsonObject:
        """Return the fields of ``run.json`` that state how agents are separated."""
        return {**self._workspaces.facts(), **self._machine.facts()}

    def secrets(self) -> set[str]:
        """Return keys of providers, and values of variables and settings that are named like
        keys."""
        return self._machine.secrets()

    @contextmanager
    def playing(self, run_id: str, models: ModelRun | None) -> Iterator[Playing]:
        """Start the services, and end them at the end.

        Args:
            run_id: of the run.
            models: of the run; None for a run without models.
        """
        labels, machine = owner_labels(run_id), self._machine
        with ExitStack() as stack:
            person = None
            if any(spec.kind == PERSON for spec in self._setup.monitors):
                person = stack.enter_context(closing(Person()))
            pool = stack.enter_context(machine.services(labels, person))
            create_recording_folder(self._setup.config, pool.owner_uid)
            plans = stack.enter_context(
                _plans(
                    self._setup,
                    machine.images,
                    machine.chosen.engine,
                    labels,
                    lambda case: self._workspaces.plan(case, labels, pool.owner_uid),
                    is_inline=self.is_inline,
                )
            )
            yield Playing(EpisodeRunner.with_services(pool, models), plans.plan, pool.abandon)


class OnNodes:
    """The nodes of a cluster."""

    def __init__(self, setup: RunSetup, nodes: Nodes) -> None:
        """Create it.

        Args:
            setup: of the run.
            nodes: started.
        """
        self._setup = setup
        self._nodes = nodes
        self._first = nodes.facts[0]
        number = len(nodes.facts)
        count = "1 node" if number == 1 else f"{number} nodes"
        self.reason = f"{self._first['reason']}; {count} of {setup.config.on}"
        """One line: which engine, and which nodes."""
        sources = [agent.source for agent in setup.participants.all()]
        self._sources = sources
        digests = self._first["images"]
        self.images: Mapping[AgentSource, Image] = {
            source: _image(*digests[source_name(source)]) for source in sources
        }
        """The images of all participants, of the first node."""
        self.isolation = str(self._first["facts"]["isolation"])
        """Name of the isolation of boxes."""
        self.is_inline = self.isolation == Isolation.INLINE.value
        """Whether agents play inside the services."""
        self.at_once = nodes.at_once
        """Episodes, or groups of short ones, that all nodes play at once."""
        self.prepared = 0

    def facts(self) -> JsonObject:
        """Return the fields of ``run.json`` that state how agents are separated, and the nodes."""
        return {**self._first["facts"], "nodes": [facts["host"] for facts in self._nodes.facts]}

    def secrets(self) -> set[str]:
        """Return keys of providers, and values of variables and settings that are named like
        keys. Nodes remove their own keys from what they send."""
        return _needs(self._setup).secrets()

    @contextmanager
    def playing(self, run_id: str, models: ModelRun | None) -> Iterator[Playing]:
        """Plan for the nodes; see :meth:`Here.playing`."""
        # Nodes replace the name of an agent by its image.
        named = {source: Image(source_name(source), "", ()) for source in self._sources}
        labels = owner_labels(run_id)
        with _plans(
            self._setup, named, NodeStarter(), labels, lambda _: None, is_inline=self.is_inline
        ) as plans:
            # Nodes start no boxes in advance.
            runner = EpisodeRunner(
                lambda spec, plan, recorded, add, _: self._nodes.play(spec, plan, recorded, add),
                self._nodes.play_inline,
                models,
            )
            yield Playing(runner, plans.plan, self._nodes.abandon)


Place = Here | OnNodes


@contextmanager
def prepared_place(setup: RunSetup, progress: Callable[[str], None]) -> Iterator[Place]:
    """Prepare the place where the episodes of a run are played, and close it at the end.

    Args:
        setup: of the run.
        progress: called with one line when a step takes long.

    Raises:
        InputError: the engine, an agent or the cluster cannot be used.
        InfraError: the engine or the cluster does not answer.
    """
    needs, config = _needs(setup), setup.config
    if config.on == HERE:
        if config.prepare and all(case.task.world == WORLD for case in setup.suite.cases):
            raise InputError(
                f"prepare: {config.prepare}: a box beside a workspace is not started in advance, "
                "and all tasks have workspaces: use --prepare 0"
            )
        with prepared_machine(needs, progress) as machine:
            workspaces = Workspaces(
                machine.chosen.engine,
                setup.suite.cases,
                progress,
                shared_score=config.shared_score,
                inside=[agent.source for agent in needs.agents if is_inside(agent.source)],
            )
            yield Here(setup, machine, workspaces)
        return
    _check_nodes_can_play(setup)
    with ray_cluster(config.on, is_trusted=config.i_trust_this_cluster) as cluster:
        models, judge = setup.participants.models(), judging_model(config)
        settings = node_settings(needs, models, judge, cluster.size)
        has_waits = config.models is not None or bool(needs.monitors)
        starting = Nodes(cluster, settings, config.concurrency, has_waits=has_waits)
        with closing(starting) as nodes:
            nodes.start(progress)
            yield OnNodes(setup, nodes)


@contextmanager
def _plans(
    setup: RunSetup,
    images: Mapping[AgentSource, Image],
    starter: BoxStarter,
    labels: dict[str, str],
    workspace: Callable[[Case], WorkspacePlan | None],
    *,
    is_inline: bool,
) -> Iterator[BoxPlans]:
    with owned_folder(labels) as calls_folder:
        calls_folder.chmod(0o755)
        yield BoxPlans(
            setup.participants,
            images,
            starter,
            setup.config.limits,
            calls_folder,
            labels,
            setup.config.models,
            workspace,
            is_inline=is_inline,
            keep_workspaces=setup.config.keep_workspaces,
        )


def _image(reference: str, digest: str) -> Image:
    return Image(reference, digest, ())


def _needs(setup: RunSetup) -> Needs:
    config = setup.config
    seats = max((len(case.task.seats) for case in setup.suite.cases), default=1)
    return Needs(
        config=config,
        agents=setup.participants.all(),
        boxes=seats * min(config.concurrency + config.prepare, len(setup.episodes)),
        worlds=sorted({case.task.world for case in setup.suite.cases}),
        monitors=setup.monitors,
        gateway=setup.gateway,
    )


def _check_nodes_can_play(setup: RunSetup) -> None:
    on = setup.config.on
    if setup.config.prepare:
        raise InputError(f"on: {on}: nodes start no boxes in advance: use --on here or --prepare 0")
    if setup.config.data_mode == "record":
        raise InputError(f"on: {on}: data_mode record needs one machine: use --on here")
    for case in setup.suite.cases:
        if case.task.world == WORLD:
            raise InputError(
                f"on: {on}: the task {case.task.task_id} has a workspace, whose tests must stay on "
                "this machine: use --on here, or --shard"
            )
    if any(spec.kind == PERSON for spec in setup.monitors):
        raise InputError(f"on: {on}: the monitor `person` needs one machine: use --on here")
