"""Steps of a task: what happens in B between two steps, and the reward of all steps together.

At the end of a step, the world sends a request. While B is paused, the engine copies its files for
the tests of this step, which run after the episode. Then the files and the script of the next step
are added.
Source: Harbor 0.24, trial/multi_step.py and trial/trial.py.
"""

from __future__ import annotations

import io
import json
import socket
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

from fumehood.core.errors import InfraError
from fumehood.core.json_values import Json
from fumehood.engines.engine import LiveWorkspaceBox, TooLarge
from fumehood.orchestrator.workspaces.artifacts import BadArtifacts, Copied
from fumehood.orchestrator.workspaces.healthcheck import health_problem, status_of
from fumehood.orchestrator.workspaces.plans import WorkspacePlan
from fumehood.orchestrator.workspaces.verification import OUTPUT_CHARS_MAX
from fumehood.scorers.verdict import REWARD, Verdict
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.worlds.workspace import STEPS_NAME

FINAL = "final"
"""Strategy: the reward of the last step counts; otherwise the mean of all steps."""
SETUP_TIMEOUT_S = 600
_FRAME_BYTES_MAX = 1 << 16
Files = tuple[Copied, tuple[str, ...]]
"""Files of a workspace for a verifier, and paths to delete there."""


class StepFiles:
    """Takes the files of a workspace at the end of each step but the last."""

    def __init__(
        self,
        plan: WorkspacePlan,
        box: LiveWorkspaceBox,
        copy: Callable[[int], Files],
        guarded: Callable[[Callable[[], str]], str],
        is_abandoned: Callable[[], bool],
    ) -> None:
        """Prepare the first step.

        Args:
            plan: of a task with steps.
            box: the workspace.
            copy: returns the files for the tests of a step, by its number from 1.
            guarded: calls a function; raises ``BadArtifacts`` if it fails because of the
                workspace, and ``InfraError`` if it fails because of the engine.
            is_abandoned: whether the run was abandoned.

        Raises:
            InfraError: the engine does not answer.
        """
        self.taken: list[Files | Verdict] = []
        """By step: its files, or why it has none."""
        self.error: InfraError | None = None
        self._plan, self._box, self._copy = plan, box, copy
        self._guarded, self._is_abandoned = guarded, is_abandoned
        problem = self._prepared(1)
        self.problem = problem and f"step {plan.of_step(1).settings['name']}: {problem}"
        """Why the first step could not be prepared, which is the fault of the task; empty if it
        could."""

    def serve(self, folder: Path) -> None:
        """Connect to the service, which listens in a folder, and answer it in another thread."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(folder / STEPS_NAME))
        Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while receive_frame(connection, _FRAME_BYTES_MAX) is not None:
                is_ready = False
                try:
                    is_ready = self._end_step()
                except InfraError as error:
                    self.error = error
                send_frame(connection, json.dumps({"ready": is_ready}).encode())

    def _end_step(self) -> bool:
        """Take the files of a step and prepare the next one; return whether that succeeded.

        The agent is root in the workspace, so each failure here counts as its failure.
        """
        number = len(self.taken) + 1
        try:
            self._guarded(self._pause)
            self.taken.append(self._copy(number))
        except (BadArtifacts, TooLarge) as error:
            self.taken.append(Verdict(problem=str(error)))
        try:
            self._guarded(self._resume)
            problem = self._guarded(lambda: self._prepared(number + 1))
        except BadArtifacts as error:
            problem = str(error)
        if problem:
            # No later step is reached, either.
            left = len(self._plan.steps) - len(self.taken)
            self.taken += [Verdict(problem=problem)] * left
        return not problem

    def _pause(self) -> str:
        self._box.pause()
        return ""

    def _resume(self) -> str:
        self._box.resume()
        return ""

    def _prepared(self, number: int) -> str:
        """Add the files of a step, run its script, and wait until it is ready; return the problem,
        empty if there is none."""
        plan = self._plan.of_step(number)
        name = str(plan.settings["name"])
        top = plan.image.working_dir
        folder = Path(str(plan.settings["folder"]), "steps", name, "workdir")
        problem = ""
        if folder.is_dir():
            self._box.unpack(_tar(folder, top))
        if (folder / "setup.sh").is_file():
            script = f"bash {top.rstrip('/')}/setup.sh"
            status = status_of(self._box, script, SETUP_TIMEOUT_S, self._is_abandoned)
            if status is None:
                problem = f"setup.sh did not end in {SETUP_TIMEOUT_S} s"
            elif status != 0:
                problem = f"setup.sh failed with status {status}"
        if plan.settings.get("step_healthcheck") and not problem:
            check = plan.settings["step_healthcheck"]
            assert isinstance(check, dict)
            problem = health_problem(self._box, check, self._is_abandoned)
        return problem


def _tar(folder: Path, top: str) -> bytes:
    def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        return entry

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, f"{top.strip('/')}/{path.name}".lstrip("/"), filter=owned_by_root)
    return content.getvalue()


def is_reached(verdict: Verdict, threshold: Json) -> bool:
    """Return whether the rewards of a step permit the next step.

    Args:
        verdict: of the step.
        threshold: None, a number for the reward of that name, or numbers by name.
    """
    if threshold is None:
        return True
    thresholds = threshold if isinstance(threshold, dict) else {REWARD: threshold}
    return all(
        verdict.rewards.get(name, float("-inf")) >= float(str(least))
        for name, least in thresholds.items()
    )


def combined(names: Sequence[str], verdicts: Sequence[Verdict], strategy: Json) -> Verdict:
    """Return the verdict of a task.

    Args:
        names: of the steps.
        verdicts: of the steps up to the first one whose reward was too small. A step without
            rewards counts as 0.
        strategy: :data:`FINAL` or the mean. An unreached last step counts as 0 with the former.
    """
    chosen = verdicts
    if strategy == FINAL:
        last = verdicts[-1]
        are_all_reached = len(verdicts) == len(names)
        chosen = [last if are_all_reached else Verdict(dict.fromkeys(last.rewards, 0.0))]
    keys = {name for verdict in chosen for name in verdict.rewards}
    rewards = {
        name: sum(verdict.rewards.get(name, 0.0) for verdict in chosen) / len(chosen)
        for name in sorted(keys)
    }
    chars_max = OUTPUT_CHARS_MAX // len(verdicts)
    steps = tuple(
        (name, replace(verdict, output=verdict.output[:chars_max]))
        for name, verdict in zip(names, verdicts, strict=False)
    )
    parts = [
        f"step {name}: {_shown(verdict.rewards) or verdict.problem}\n{verdict.output}"
        for name, verdict in steps
    ]
    return Verdict(
        rewards,
        "" if rewards else next((verdict.problem for verdict in verdicts if verdict.problem), ""),
        "\n".join(part[:chars_max] for part in parts),
        sum(verdict.files for verdict in verdicts),
        sum(verdict.left_out for verdict in verdicts),
        steps=steps,
    )


def _shown(rewards: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in rewards.items())
