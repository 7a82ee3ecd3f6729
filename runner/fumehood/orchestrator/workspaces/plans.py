"""The images of the workspaces of a run, and how to start the boxes of each task."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from fumehood.benchmarks.shared.checkout import digest_of_folder
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.task import Case
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    Engine,
    EngineOptions,
    Image,
    Limits,
    LiveWorkspaceEngine,
    WorkspaceEngine,
    WorkspaceImage,
)
from fumehood.engines.images.dockerfile import starts_from_workspace
from fumehood.engines.images.helper import build_helper
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.workspaces.checkpoints import CHECKPOINT, Checkpoint, checkpoint_of
from fumehood.orchestrator.workspaces.services import ServicePlan, with_settings
from fumehood.scorers.verdict import SHARED_TESTS, TERMINALS, WORKSPACE

WORLD = "workspace"
MIB = 1 << 20
_WITHOUT_WORKDIR = ("/app", "/home", "/root", "/srv", "/workspace")
"""Watched folders of an image whose working folder is /."""


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """How to start the boxes of one task."""

    engine: WorkspaceEngine
    image: Image
    verifier: Image
    settings: Mapping[str, Json]
    """The criterion ``workspace`` of the gold."""
    helper: Path
    labels: dict[str, str]
    owner_uid: int
    """User of the service."""
    has_shared_score: bool = False
    """Whether the tests also run inside the workspace, after the verdict of the verifier."""
    answer: str = ""
    """What the agent submitted, for :attr:`program`."""
    inside: Mapping[AgentSource, Image] = field(default_factory=dict)
    """Images of the agents that run inside the workspace."""
    agent: Image | None = None
    """Image of the agent of the episode, if it runs inside the workspace."""
    services: tuple[ServicePlan, ...] = ()
    """Services beside the workspace, in the order of their starts."""
    checkpoint: Checkpoint | None = None
    """From what the workspace starts, in addition to its image."""
    kept: Path | None = None
    """File for the checkpoint of the episode; None keeps none."""

    @property
    def setup(self) -> tuple[tuple[str, ...], ...]:
        """Commands to execute in the workspace before its helper."""
        commands = self.settings.get("setup")
        commands = commands if isinstance(commands, list) else []
        return tuple(tuple(map(str, command)) for command in commands if isinstance(command, list))

    @property
    def healthcheck(self) -> Mapping[str, Json]:
        """The check that must succeed before the agent starts; empty if there is none."""
        check = self.settings.get("healthcheck")
        return check if isinstance(check, dict) else {}

    @property
    def steps(self) -> tuple[Mapping[str, Json], ...]:
        """The settings of the steps; empty for a task without steps."""
        steps = self.settings.get("steps")
        return (
            tuple(step for step in steps if isinstance(step, dict))
            if isinstance(steps, list)
            else ()
        )

    def of_step(self, number: int) -> WorkspacePlan:
        """Return the plan with the settings of a step, by its number from 1."""
        return replace(self, settings={**self.settings, **self.steps[number - 1]})

    @property
    def program(self) -> str:
        """Python source that evaluates an answer and writes the reward; empty for tests of files
        of the workspace."""
        return str(self.settings.get("verifier_program") or "")

    @property
    def is_shared(self) -> bool:
        """Whether the tests run only inside the workspace."""
        return self.settings.get("verification") == SHARED_TESTS

    @property
    def is_live(self) -> bool:
        """Whether the workspace runs on after the episode, for tests inside it."""
        return self.is_shared or self.has_shared_score

    @property
    def verifier_timeout_s(self) -> float:
        """Time for the tests, seconds."""
        timeout = self.settings.get("verifier_timeout_s")
        return timeout if isinstance(timeout, int | float) else 600

    @property
    def limits(self) -> Limits:
        """The limits of B, and those of C."""
        memory, cpus = self.settings.get("memory_mb"), self.settings.get("cpus")
        storage = self.settings.get("storage_mb")
        written_bytes = (storage if isinstance(storage, int) else 2048) * MIB
        return Limits(
            memory_bytes=(memory if isinstance(memory, int) else 2048) * MIB,
            cpus=float(cpus) if isinstance(cpus, int | float) else 1.0,
            processes=512,
            file_bytes=written_bytes,
            tmp_bytes=written_bytes,
        )

    @property
    def terminals(self) -> bool:
        """Whether the programs of all boxes of the task can open pseudo-terminals."""
        return self.settings.get(TERMINALS) is True

    @property
    def watched(self) -> tuple[str, ...]:
        """The folders whose changes are part of the state."""
        top = self.image.working_dir
        return _WITHOUT_WORKDIR if top == "/" else (top,)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The declared paths to copy to the verifier; empty for the changes below the working
        folder."""
        declared = self.settings.get("artifacts")
        return tuple(map(str, declared)) if isinstance(declared, list) else ()


class Workspaces:
    """The images of the workspaces of a run."""

    def __init__(
        self,
        engine: Engine | None,
        cases: Iterable[Case],
        progress: Callable[[str], None],
        *,
        shared_score: bool = False,
        inside: Iterable[AgentSource] = (),
    ) -> None:
        """Build all images.

        Args:
            engine: of the run; None if no case has a workspace.
            cases: of the suite.
            progress: receives a line when something takes long.
            shared_score: whether the tests also run inside each workspace.
            inside: the agents that run inside the workspace.

        Raises:
            InputError: the engine starts no workspaces, a folder has changed, or an image cannot be
                built.
            InfraError: the engine does not answer.
        """
        self._plans: dict[str, tuple[WorkspaceImage, WorkspaceImage]] = {}
        self._engine: WorkspaceEngine | None = None
        self._helper: Path | None = None
        self._shared_score = shared_score
        self._sources = tuple(inside)
        self._inside: dict[str, dict[AgentSource, Image]] = {}
        self._services: dict[str, tuple[ServicePlan, ...]] = {}
        self._checkpoints: dict[str, Checkpoint] = {}
        self._with_terminals: set[str] = set()
        """Tasks whose boxes have pseudo-terminals."""
        for case in cases:
            if case.task.world == WORLD:
                self._prepare(engine, case, progress)

    def facts(self) -> JsonObject:
        """Return what the manifest of a run states; empty without workspaces."""
        if not self._plans:
            return {}
        images = [image for pair in self._plans.values() for image in pair]
        bases = {name: used for image in images for name, used in image.bases.items()}
        digests: JsonObject = {
            task: {
                "workspace": pair[0].image.digest,
                "verifier": pair[1].image.digest,
                **{
                    f"agent {Path(source.name).name}": image.digest
                    for source, image in self._inside.get(task, {}).items()
                },
            }
            for task, pair in self._plans.items()
        }
        facts: JsonObject = {"replaced_bases": {**bases}, "images": digests}
        if self._with_terminals:
            facts["terminals"] = [*sorted(self._with_terminals)]
        if self._checkpoints:
            facts["checkpoints"] = {task: each.sha256 for task, each in self._checkpoints.items()}
        return {"workspaces": facts}

    def plan(self, case: Case, labels: dict[str, str], owner_uid: int) -> WorkspacePlan | None:
        """Return how to start the boxes of a task; None if it has no workspace."""
        pair = self._plans.get(case.task.task_id)
        if pair is None or self._engine is None or self._helper is None:
            return None
        workspace, verifier = pair
        return WorkspacePlan(
            self._engine,
            workspace.image,
            verifier.image,
            _settings(case),
            self._helper,
            labels,
            owner_uid,
            self._shared_score and _has_shared_mode(_settings(case)),
            inside=self._inside.get(case.task.task_id, {}),
            services=self._services.get(case.task.task_id, ()),
            checkpoint=self._checkpoints.get(case.task.task_id),
        )

    def _prepare(self, engine: Engine | None, case: Case, progress: Callable[[str], None]) -> None:
        if not isinstance(engine, WorkspaceEngine):
            name = f"the engine {engine.name}" if engine else "a run without boxes"
            raise InputError(
                f"the task {case.task.task_id} needs a workspace, which {name} does not start: "
                "use --engine docker or oci"
            )
        self._helper = self._helper or build_helper(progress)
        if self._helper is None:
            raise InputError("workspaces need a C compiler (Debian: apt-get install musl-tools)")
        self._engine = engine
        settings = _settings(case)
        folder = Path(str(settings["folder"]))
        if not folder.is_dir() or digest_of_folder(folder) != settings["digest"]:
            raise InputError(
                f"{folder} is missing or differs from the task {case.task.task_id} of the run: "
                "restore the folder, or start a new run"
            )
        if settings.get(TERMINALS) is True:
            self._with_terminals.add(case.task.task_id)
        if checkpoint := checkpoint_of(settings):
            self._checkpoints[case.task.task_id] = checkpoint
        own, installed = _lines(settings, "workspace_lines"), _lines(settings, "verifier_lines")
        is_shared = settings.get("verification") == SHARED_TESTS
        is_live = is_shared or (self._shared_score and _has_shared_mode(settings))
        if is_live and not isinstance(engine, LiveWorkspaceEngine):
            raise InputError(
                f"the engine {engine.name} runs no tests inside a workspace, as "
                f"{'the suite' if is_shared else '--shared-score'} demands: use --engine docker "
                "or oci"
            )
        needs_live = settings.get("healthcheck") or settings.get("steps")
        if needs_live and not isinstance(engine, LiveWorkspaceEngine):
            raise InputError(
                f"the engine {engine.name} runs no health checks and no steps in a workspace, as "
                f"the task {case.task.task_id} demands: use --engine docker or oci"
            )
        # Tests inside the workspace find their packages there.
        workspace = engine.prepare_workspace(
            folder / "environment",
            [*own, *installed] if is_live else own,
            str(settings.get("workdir") or ""),
        )
        workspace = replace(
            workspace,
            image=replace(workspace.image, environment=texts_of(settings.get("env"))),
        )
        place = workspace.image.working_dir
        if place == "/" and not settings.get("artifacts"):
            raise InputError(
                f"{folder}: the working folder of the image is /: add WORKDIR to "
                "environment/Dockerfile, or declare `artifacts` in task.toml"
            )
        verifier = workspace
        if settings.get("verifier_folder") == "tests":
            verifier = engine.prepare_workspace(folder / "tests", (), place)
        elif installed:
            verifier = engine.prepare_workspace(folder / "environment", [*own, *installed], place)
        self._plans[case.task.task_id] = (workspace, verifier)
        self._services[case.task.task_id] = _services(engine, case.task.task_id, settings)
        if self._sources:
            if not isinstance(engine, LiveWorkspaceEngine):
                raise InputError(
                    f"the engine {engine.name} starts no agent inside a workspace: use "
                    "--engine docker or oci"
                )
            self._inside[case.task.task_id] = {
                source: engine.prepare_inside(source, workspace.image) for source in self._sources
            }


@contextmanager
def workspaces_of(
    engine: str,
    runtime: str | None,
    cases: Sequence[Case],
    progress: Callable[[str], None],
    *,
    shared_score: bool = False,
) -> Iterator[Workspaces]:
    """Yield the workspaces of episodes that are played again, and close their engine at the end.

    Args:
        engine: name of the engine of the run.
        runtime: its OCI runtime; None for the default.
        cases: of the episodes.
        progress: receives a line when something takes long.
        shared_score: whether the tests of the run also ran inside each workspace.

    Raises:
        InputError: see :class:`Workspaces`.
        InfraError: the engine does not answer.
    """
    if not any(case.task.world == WORLD for case in cases):
        yield Workspaces(None, (), progress)
        return
    options = EngineOptions(runtime=runtime, progress=progress)
    with closing(choose_engine(engine, options).engine) as chosen:
        yield Workspaces(chosen, cases, progress, shared_score=shared_score)


def is_inside(source: AgentSource) -> bool:
    """Return whether an agent runs inside the workspace of its task."""
    return source.kind is AgentKind.FOLDER and starts_from_workspace(Path(source.name))


def why_not_inside(case: Case) -> str:
    """Return why no agent can run inside the workspace of a task; empty if one can."""
    if case.task.world != WORLD:
        return "it has no workspace"
    settings = _settings(case)
    if settings.get("verification") == SHARED_TESTS:
        return "its tests run inside the workspace, which ends with the agent"
    reasons = {
        "setup": "its workspace is set up by commands",
        "healthcheck": "it has a health check",
        "services": "it has services",
        "steps": "it has steps",
        CHECKPOINT: "it starts from a checkpoint",
    }
    return next((reason for name, reason in reasons.items() if settings.get(name)), "")


def check_shared_score(cases: Iterable[Case]) -> None:
    """Raise InputError if no task of a suite can have the score of tests in its workspace."""
    if not any(case.task.world == WORLD and _has_shared_mode(_settings(case)) for case in cases):
        raise InputError(
            "--shared-score has no effect: the suite has no workspace whose tests run in another "
            "box only; remove it"
        )


def _has_shared_mode(settings: Mapping[str, Json]) -> bool:
    """Return whether a task could be verified in its workspace, but is not."""
    has_tests = settings.get("verifier_folder") != "tests" and not (
        settings.keys() & {"verifier_program", "steps"}
    )
    return has_tests and settings.get("verification") != SHARED_TESTS


def _services(
    engine: WorkspaceEngine, task: str, settings: Mapping[str, Json]
) -> tuple[ServicePlan, ...]:
    """Build the images of the services of a task."""
    listed = settings.get("services")
    services = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    if services and not isinstance(engine, LiveWorkspaceEngine):
        raise InputError(
            f"the engine {getattr(engine, 'name', '')} starts no services, which the task {task} "
            "has: use --engine docker or oci"
        )
    plans = []
    for one in services:
        assert isinstance(engine, LiveWorkspaceEngine)
        folder = Path(str(settings["folder"]), "environment", str(one["folder"]))
        if one["image"]:
            with tempfile.TemporaryDirectory() as made:
                Path(made, "Dockerfile").write_text(f"FROM {one['image']}\n", "utf-8")
                built = engine.prepare_service(Path(made))
        else:
            built = engine.prepare_service(folder)
        command, check = one["command"], one["healthcheck"]
        words = [*map(str, command)] if isinstance(command, list) else []
        image = with_settings(built.image, words, texts_of(one["environment"]))
        if not image.command:
            raise InputError(
                f"the service {one['name']} of the task {task} has no command: add `command` to "
                "docker-compose.yaml, or CMD to its Dockerfile"
            )
        plans.append(ServicePlan(str(one["name"]), image, check if isinstance(check, dict) else {}))
    return tuple(plans)


def _lines(settings: Mapping[str, Json], name: str) -> list[str]:
    """Return lines to add to a Dockerfile."""
    lines = settings.get(name)
    return [*map(str, lines)] if isinstance(lines, list) else []


def _settings(case: Case) -> Mapping[str, Json]:
    settings = case.gold.criterion(WORKSPACE)
    if settings is None:
        raise InputError(
            f"the task {case.task.task_id} has no criterion {WORKSPACE!r}: load it by its benchmark"
        )
    return settings


def texts_of(value: Json) -> dict[str, str]:
    """Return the texts of a JSON object; none if it is no object."""
    return {name: str(text) for name, text in value.items()} if isinstance(value, dict) else {}
