"""The boxes of one attempt in a workspace: starts, measures, stops and verifies box B."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import zip_longest
from threading import Event, Thread
from typing import TypeVar

from fumehood.core.episode_spec import DataMode, DataSource, EpisodeSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    Box,
    BoxOutput,
    BoxSpec,
    Exit,
    ExitReason,
    KilledOutside,
    LiveWorkspaceBox,
    NotBegun,
    TooLarge,
    Workspace,
    WorkspaceBox,
)
from fumehood.engines.records import owned_folder
from fumehood.orchestrator.workspaces.artifacts import (
    BYTES_MAX,
    BadArtifacts,
    Copied,
    in_tree_order,
    is_below,
    tar_of,
)
from fumehood.orchestrator.workspaces.checkpoints import keep, tar_of_changes
from fumehood.orchestrator.workspaces.disk_watch import MEASURE_MS, DiskWatch
from fumehood.orchestrator.workspaces.healthcheck import health_problem
from fumehood.orchestrator.workspaces.plans import WORLD, WorkspacePlan
from fumehood.orchestrator.workspaces.services import (
    REASON_CHARS_MAX,
    start_service,
    unhealthy,
)
from fumehood.orchestrator.workspaces.steps import Files, StepFiles, combined, is_reached
from fumehood.orchestrator.workspaces.tests_inside import live, verified_inside
from fumehood.orchestrator.workspaces.verification import (
    copied_from,
    evaluated,
    output_of,
    verified,
)
from fumehood.scorers.verdict import Verdict
from fumehood.worlds.workspace import SETTING, SOCKET_NAME, STEPS

T = TypeVar("T")
ERROR_CHARS_MAX = 200
_CAUSED_BY_FILES = (InfraError, OSError, RecursionError, ValueError)
"""Errors that files of an agent can cause, such as deep folders and unusual names."""
SETUP_CHARS_MAX = 500
SETUP_FAILED = 97
"""Exit status of a workspace whose setup failed."""
ANSWER_CHARS_MAX = 30_000
"""Limit of an answer, which is one argument of a command; see execve(2)."""
_SETUP = ".fumehood-setup"
"""File of the setup, which deletes itself, so that the agent does not read it."""
_HELPER = f"{BOX_SOCKET_DIR}/bin/fumehood"


CHANGED_MAX = 200
"""How many changed files of an agent inside the workspace a row lists."""


class AgentBox:
    """The box of an agent inside the workspace, which is also the workspace."""

    def __init__(self, box: WorkspaceBox, take_files: Callable[[], None]) -> None:
        """Wrap a box.

        Args:
            box: of the workspace.
            take_files: called before the box is removed; must not raise.
        """
        self._box = box
        self._take_files = take_files

    @property
    def name(self) -> str:
        """The engine's name for the box."""
        return self._box.name

    def host_pid(self) -> int | None:
        """Return the host's process ID of one process of the box."""
        return self._box.host_pid()

    def wait(self, timeout_ms: int) -> Exit | None:
        """Return how the agent's process ended, or None if it still runs."""
        return self._box.wait(timeout_ms)

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        """Stop everything in the box."""
        self._box.kill(reason)

    def close(self) -> BoxOutput:
        """Stop the box, take its files, remove it, and return its output."""
        self._take_files()
        return output_of(self._box)


def without_tools(spec: EpisodeSpec) -> EpisodeSpec:
    """Return the specification of an episode whose agent has its own shell in the workspace."""
    return replace(spec, seats=tuple(replace(seat, tools=()) for seat in spec.seats))


def changed_files(paths: Collection[str], tops: Collection[str]) -> tuple[str, ...]:
    """Return the first changed paths below some folders, without folders that contain others."""
    # An agent can change thousands of paths with thousands of parts each.
    ordered = sorted(set(paths), key=in_tree_order)
    followed = zip_longest(ordered, ordered[1:], fillvalue="")
    ends = (path for path, after in followed if not after.startswith(f"{path}/"))
    below = sorted(path for path in ends if any(is_below(path, top) for top in tops))
    return tuple(below[:CHANGED_MAX])


class EpisodeWorkspace:
    """The boxes B and C of one attempt. Use it as a context manager."""

    def __init__(
        self, plan: WorkspacePlan, is_abandoned: Callable[[], bool] = lambda: False
    ) -> None:
        """Start nothing yet.

        Args:
            plan: how to start the boxes.
            is_abandoned: whether the run was abandoned, so that nothing waits for a verifier.
        """
        self.infra: Infra | None = None
        """A failure of the infrastructure; None if there was none."""
        self._plan = plan
        self._is_abandoned = is_abandoned
        self._stack = ExitStack()
        self._box: WorkspaceBox | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._started = Event()
        self._problem = ""
        self._setup_problem = ""
        self._services: list[WorkspaceBox] = []
        self._steps: StepFiles | None = None
        self._files: tuple[Copied, tuple[str, ...]] | None = None
        self._changed: tuple[str, ...] = ()
        self._kept = ""

    def __enter__(self) -> EpisodeWorkspace:
        """Make the folder of the socket."""
        folder = self._stack.enter_context(owned_folder(self._plan.labels))
        # Other users pass through it to a folder whose name they cannot guess.
        folder.chmod(0o711)
        self._folder = folder / secrets.token_hex(8)
        (self._folder / "bin").mkdir(parents=True)
        shutil.copy(self._plan.helper, self._folder / "bin" / "fumehood")
        for path in (self._folder, self._folder / "bin", self._folder / "bin" / "fumehood"):
            path.chmod(0o755)
        # B does not see this folder.
        self._steps_folder = folder / secrets.token_hex(8)
        self._steps_folder.mkdir(0o755)
        if os.geteuid() == 0:
            for path in (self._folder, self._steps_folder):
                os.chown(path, self._plan.owner_uid, -1)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the boxes and the folder."""
        try:
            self._kill()
            self._close()
        except InfraError as failure:
            self._fail(failure)
        finally:
            self._stack.close()

    def add_to(self, spec: EpisodeSpec) -> EpisodeSpec:
        """Return a specification with the folder in which the service listens, and without tools
        for an agent inside the workspace."""
        settings: JsonObject = {SETTING: str(self._folder)}
        if self._plan.steps:
            settings[STEPS] = str(self._steps_folder)
        source = DataSource(DataMode.OFFLINE, settings)
        spec = replace(spec, data_source=source)
        return spec if self._plan.agent is None else without_tools(spec)

    def start(self) -> None:
        """Start B in another thread; the first call of the agent waits for it. Return when B passed
        the health check of the task. An agent inside the workspace starts it itself.

        Raises:
            InfraError: the check failed; :attr:`infra` states why.
        """
        if self._plan.agent is not None:
            return
        self._thread.start()
        if self._plan.services:
            self._start_services()
        if not (self._plan.healthcheck or self._plan.steps):
            return
        self._started.wait()
        if self._box is not None:
            self._prepare(live(self._box))
        if self.infra is not None:
            raise InfraError("the workspace is not ready")

    def _start_services(self) -> None:
        """Start the services of the task, each when those before it are healthy."""
        self._started.wait()
        if self._box is None:
            raise InfraError("the workspace did not start")
        plan, problem = self._plan, ""
        for service in plan.services:
            box = live(
                start_service(
                    service,
                    self._box.name,
                    lambda spec: live(plan.engine.start(spec)),
                    self._folder / "bin",
                    plan.limits,
                    plan.labels,
                    terminals=plan.terminals,
                )
            )
            self._services.append(box)
            if problem := unhealthy(service, box, self._is_abandoned):
                box.kill()
                output = output_of(box)
                printed = (output.stdout + output.stderr).decode("utf-8", "replace").strip()
                reason = f"{problem}: {printed}"[:REASON_CHARS_MAX]
                reason = f"the service {service.name} failed; report this to its author: {reason}"
                self.infra = self.infra or Infra(InfraKind.TASK, reason)
                raise InfraError("the services of the task are not ready")

    def _prepare(self, box: LiveWorkspaceBox) -> None:
        """Wait until B passed the health check, and prepare the first step."""
        plan, problem = self._plan, ""
        if plan.healthcheck:
            problem = health_problem(box, plan.healthcheck, self._is_abandoned)
            problem = problem and f"health check: {problem}"
        if plan.steps and not problem:

            def copy(number: int) -> Files:
                return self._twice(lambda: copied_from(box, plan.of_step(number)))

            self._steps = StepFiles(plan, box, copy, self._twice, self._is_abandoned)
            self._steps.serve(self._steps_folder)
            problem = self._steps.problem
        self._blame_task(problem)

    def _blame_task(self, problem: str) -> None:
        if problem:
            reason = f"the task cannot be played; report this to its author: {problem}"
            self.infra = self.infra or Infra(InfraKind.TASK, reason)

    def start_agent(self, spec: BoxSpec) -> Box:
        """Start the box of an agent that runs inside the workspace.

        Raises:
            InputError: the image has no such command.
            InfraError: the engine cannot start it.
        """
        box = self._box = self._plan.engine.start(spec)
        self._thread = Thread(target=self._watch, args=(box,), daemon=True)
        self._thread.start()
        self._started.set()
        return AgentBox(box, self._take_files)

    def _take_files(self) -> None:
        """Keep the files of the box of an agent, before it is removed."""
        box, plan = self._box, self._plan
        assert box is not None
        try:
            self._kill()
            self._keep(box)
            if not self._problem:
                changed = self._twice(box.changed)
                self._changed = changed_files(changed, plan.watched)
                self._files = self._twice(lambda: copied_from(box, plan))
        except (BadArtifacts, TooLarge) as error:
            self._problem = str(error)
        except (InfraError, InputError) as error:
            self._fail(error)

    def stop(self) -> None:
        """End the calls of the agent; a running one fails. Kills B, unless tests run inside it."""
        if self._plan.is_live and self._thread.ident is not None:
            self._started.wait()
            with suppress(OSError):
                # The helper looks for this file.
                (self._folder / f"{SOCKET_NAME}.ended").touch(0o644)
        else:
            self._kill()

    def verify(self, answer: str | None) -> Verdict | None:
        """Run the tests of the task in C, in B or in both, and return the verdict; None if the
        infrastructure failed.

        Args:
            answer: of the agent; None if it submitted none.
        """
        try:
            self.stop()
            if self._steps is not None and self._steps.error is not None:
                self._fail(self._steps.error)
            if self._box is None or self.infra is not None:
                return None
            if self._plan.agent is None:
                self._keep(self._box)
            return replace(self._verdict(self._box, answer), checkpoint=self._kept)
        except (InfraError, InputError) as error:
            self._fail(error)
            return None

    def _keep(self, box: WorkspaceBox) -> None:
        """Write the checkpoint of B, which ran all calls of the agent, if the run keeps it."""
        plan = self._plan
        if plan.kept is None or self._setup_problem:
            return
        try:
            if self._problem:
                raise BadArtifacts(self._problem)
            if plan.is_live:
                self._twice(lambda: live(box).pause())
            content = self._twice(lambda: tar_of_changes(box, plan.watched))
            self._kept = f"sha256:{keep(content, plan.kept)}"
        except (BadArtifacts, TooLarge) as error:
            self._kept = f"none: {error}"

    def _verdict(self, box: WorkspaceBox, answer: str | None) -> Verdict:
        if self._steps is not None:
            return self._verified_steps(box, self._steps.taken)
        if self._setup_problem:
            return Verdict(problem=self._setup_problem, is_shared=self._plan.is_shared)
        if self._plan.program:
            if answer is None:
                problem = "the agent submitted no answer"
                return Verdict(problem=problem, is_shared=self._plan.is_shared)
            text = answer.replace("\0", "").encode("utf-8", "replace").decode()
            self._plan = replace(self._plan, answer=text[:ANSWER_CHARS_MAX])
        if self._plan.is_shared:
            return self._verified_inside(box)
        verdict = self._verified(box)
        if self._plan.agent is not None:
            verdict = replace(verdict, changed=self._changed)
        elif self._plan.has_shared_score:
            verdict = replace(verdict, shared=self._verified_inside(box))
        return verdict

    def _verified(self, box: WorkspaceBox) -> Verdict:
        """Copy the files of B, which is killed or paused, into C, and return the verdict of C."""
        plan = self._plan
        try:
            if plan.is_live:
                self._twice(lambda: live(box).pause())
            if self._problem:
                return Verdict(problem=self._problem)
            if plan.program:
                folder = self._folder.with_name(secrets.token_hex(8))
                return self._twice(lambda: evaluated(plan, folder, self._is_abandoned))
            files, deleted = self._files or self._twice(lambda: copied_from(box, plan))
            if not plan.is_live:
                self._close()
            return self._verified_files(plan, files, deleted)
        except (BadArtifacts, TooLarge) as error:
            return Verdict(problem=str(error))

    def _verified_steps(self, box: WorkspaceBox, taken: Sequence[Files | Verdict]) -> Verdict:
        """Run the tests of each step in a new C, up to the first one whose reward is too small."""
        plan = self._plan
        if self._problem:
            return Verdict(problem=self._problem)
        verdicts: list[Verdict] = []
        for number, step in enumerate(plan.steps, 1):
            try:
                files = self._files_of_step(taken, number, box)
                verdict = (
                    files
                    if isinstance(files, Verdict)
                    else self._verified_files(plan.of_step(number), *files)
                )
            except (BadArtifacts, TooLarge) as error:
                verdict = Verdict(problem=str(error))
            verdicts.append(verdict)
            if not is_reached(verdict, step.get("min_reward")):
                break
        names = [str(step["name"]) for step in plan.steps]
        return combined(names, verdicts, plan.settings.get("step_rewards"))

    def _files_of_step(
        self, taken: Sequence[Files | Verdict], number: int, box: WorkspaceBox
    ) -> Files | Verdict:
        if number <= len(taken):
            return taken[number - 1]
        if number > len(taken) + 1:
            return Verdict(problem="the agent ended before this step")
        return self._twice(lambda: copied_from(box, self._plan.of_step(number)))

    def _verified_files(
        self, plan: WorkspacePlan, files: Copied, deleted: tuple[str, ...]
    ) -> Verdict:
        socket_dir = self._folder / "bin"
        return self._twice(lambda: verified(plan, socket_dir, files, deleted, self._is_abandoned))

    def _verified_inside(self, box: WorkspaceBox) -> Verdict:
        try:
            verdict = self._twice(
                lambda: verified_inside(live(box), self._plan, self._is_abandoned)
            )
        except (BadArtifacts, TooLarge) as error:
            verdict = Verdict(problem=str(error), is_shared=True)
        self._kill()
        self._close()
        return Verdict(problem=self._problem, is_shared=True) if self._problem else verdict

    def _kill(self) -> None:
        if self._thread.ident is None:
            return
        self._started.wait()
        for box in filter(None, (self._box, *self._services)):
            box.kill()
        self._thread.join()

    def _run(self) -> None:
        """Start B, and kill it if it writes more than its limit."""
        try:
            box = self._box = self._plan.engine.start(self._spec())
            self._started.set()
        except (InfraError, InputError) as error:
            self._fail(error)
            self._release_service()
        else:
            self._watch(box)
        finally:
            self._started.set()

    def _spec(self) -> BoxSpec:
        plan = self._plan
        command = (_HELPER, WORLD, f"{BOX_SOCKET_DIR}/{SOCKET_NAME}", *plan.watched)
        setup, checkpoint = plan.setup, plan.checkpoint
        if checkpoint is not None and checkpoint.deleted:
            setup = (("rm", "-rf", "--", *checkpoint.deleted), *setup)
        if setup:
            command = ("/bin/sh", f"/{_SETUP}", *command)
        return BoxSpec(
            image=replace(plan.image, command=command),
            socket_dir=self._folder,
            limits=plan.limits,
            labels=plan.labels,
            workspace=Workspace(
                archive=_first_files(setup, checkpoint.archive if checkpoint else b""),
                hosts=tuple(service.name for service in plan.services),
                terminals=plan.terminals,
            ),
        )

    def _watch(self, box: WorkspaceBox) -> None:
        """Kill B if it writes more than its limit, and record a setup that failed."""
        try:
            watch = DiskWatch(box, self._plan.limits.tmp_bytes)
            while (ended := watch.wait(MEASURE_MS)) is None:
                excess = (self._excess(one, watch) for one in (box, *self._services))
                self._problem = self._problem or next(filter(None, excess), "")
                if self._problem:
                    box.kill()
            # Before the service accepts its helper, the agent cannot cause a status.
            has_setup = self._plan.agent is None
            if has_setup and ended.code == SETUP_FAILED and (self._folder / SOCKET_NAME).exists():
                output = output_of(box)
                printed = (output.stdout + output.stderr).decode("utf-8", "replace").strip()
                reason = f"the setup of the task failed; report this to its author: {printed}"
                self._setup_problem = reason[:SETUP_CHARS_MAX]
                self._release_service()
        except (InfraError, InputError) as error:
            self._fail(error)
            self._release_service()
        except Exception:
            # Nothing would limit it any more.
            self._problem = self._problem or "the workspace cannot be measured"
            box.kill()
            raise

    def _excess(self, box: WorkspaceBox, watch: DiskWatch) -> str:
        """Return why a workspace must be killed; empty if it may continue."""
        limit = self._plan.limits.tmp_bytes
        try:
            written_bytes = self._twice(lambda: box.written_bytes(limit))
        except TooLarge as error:
            return str(error)
        except BadArtifacts as error:
            # A workspace that has ended cannot be measured.
            return "" if box.wait(0) else str(error)
        watch.found(written_bytes)
        is_over = written_bytes > limit
        return f"the workspace wrote {written_bytes} bytes, of at most {limit}" if is_over else ""

    def _twice(self, step: Callable[[], T]) -> T:
        """Call a function; call it again if it fails, but the engine can read an unused workspace.

        Files of the agent can make the engine fail, for instance by long paths. This is not a
        failure of the infrastructure.

        Raises:
            InfraError: the engine cannot start or read an unused workspace either, or start a
                program in it, or another process of the host killed a box, which no agent can
                cause.
            BadArtifacts: both calls failed, or a program did not begin in the workspace, and an
                unused workspace works.
        """
        try:
            return step()
        except KilledOutside:
            raise
        except _CAUSED_BY_FILES as error:
            if self._is_abandoned():
                raise
            self._read_unused()
            if isinstance(error, NotBegun):
                raise BadArtifacts(f"in the workspace, {error}") from None
        try:
            return step()
        except KilledOutside:
            raise
        except _CAUSED_BY_FILES as error:
            self._read_unused()
            problem = (str(error) or type(error).__name__)[:ERROR_CHARS_MAX]
            raise BadArtifacts(f"the engine cannot read the workspace: {problem}") from None

    def _read_unused(self) -> None:
        """Start a workspace that no agent used, start a program in it, and read it."""
        plan = self._plan
        spec = BoxSpec(
            image=replace(plan.image, command=("/bin/sh", "-c", "exec sleep 600")),
            socket_dir=self._folder / "bin",
            limits=plan.limits,
            labels=plan.labels,
            workspace=Workspace(),
        )
        box = plan.engine.start(spec)
        try:
            if isinstance(box, LiveWorkspaceBox):
                box.execute(("/bin/sh", "-c", ":"), {})
            box.written_bytes()
            box.kill()
            box.changed()
            box.copy_out("/etc", BYTES_MAX)
        finally:
            output_of(box)

    def _release_service(self) -> None:
        """Connect in place of a box that did not start, so that no call waits for it."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._folder / SOCKET_NAME))

    def _close(self) -> None:
        for box in filter(None, (*self._services, self._box)):
            output_of(box)

    def _fail(self, error: Exception) -> None:
        self.infra = self.infra or Infra(InfraKind.ENGINE, f"workspace: {error}")


def _first_files(commands: Sequence[Sequence[str]], archive: bytes) -> bytes:
    """Return a tar with the files of another one, and with a script that executes commands, and
    then its arguments; empty for neither."""
    if not commands:
        return archive
    steps = [f"{shlex.join(command)} </dev/null || exit {SETUP_FAILED}" for command in commands]
    return tar_of({_SETUP: "\n".join(['rm -- "$0"', *steps, 'exec "$@"', ""])}, archive)
