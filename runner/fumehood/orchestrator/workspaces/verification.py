"""Verification in box C: copies files of B into it, runs the tests, and reads the rewards."""

from __future__ import annotations

import io
import json
import math
import shlex
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from fumehood.core.errors import InfraError
from fumehood.engines.engine import (
    BOX_SOCKET_DIR,
    BoxOutput,
    BoxSpec,
    Workspace,
    WorkspaceBox,
)
from fumehood.orchestrator.workspaces.artifacts import (
    BYTES_MAX,
    REWARD_FOLDER,
    Copied,
    check_deleted,
    copied,
    files_of,
    is_below,
    is_loaded,
    tar_of,
)
from fumehood.orchestrator.workspaces.disk_watch import wait_within_limit
from fumehood.orchestrator.workspaces.plans import MIB, WorkspacePlan, texts_of
from fumehood.scorers.verdict import Verdict

REWARD_BYTES_MAX = 16 * MIB
REWARD_MAX = 1e15
"""Maximum absolute value of a reward, so that reports can compute means of all rewards."""
REWARDS_MAX = 1000
NAME_CHARS_MAX = 200
"""Maximum length of the name of a reward."""
OUTPUT_CHARS_MAX = 4000
"""How many of the last characters of a verifier's output a row keeps."""
_UNPACKED_BYTES = 10
"""Maximum size on the disk for each byte of a tar: a short file uses a whole block."""
_VERIFY = 'rm -rf -- "$@"; chmod +x /tests/test.sh; exec /tests/test.sh'
"""Deletes what the workspace deleted, and runs the tests. Source: Harbor 0.25, verifier.py."""
_TESTS = ("/bin/sh", "-c", _VERIFY, "verify")


def copied_from(box: WorkspaceBox, plan: WorkspacePlan) -> tuple[Copied, tuple[str, ...]]:
    """Return the files of a killed or paused workspace for its verifier, and what to delete there.

    Raises:
        BadArtifacts: its content cannot be copied.
        TooLarge: it is too large.
        InfraError: the engine does not answer.
    """
    declared, top = plan.artifacts, plan.image.working_dir
    paths = (*declared, "/logs/artifacts") if declared else (top, "/logs/artifacts")
    tars, left_bytes = [], BYTES_MAX
    for path in paths:
        archive = box.copy_out(path, left_bytes)
        if archive is not None:
            left_bytes -= len(archive)
            tars.append((path, archive))
    files = copied(tars, None if declared else box.changed(), tests_of(plan))
    return files, _deleted(box, plan)


def evaluated(plan: WorkspacePlan, socket_dir: Path, is_abandoned: Callable[[], bool]) -> Verdict:
    """Let the program of a task evaluate the answer in a new box; see :func:`verified`.

    The program has the place that the helper has in B, so that both boxes have the same files.

    Args:
        plan: of a task with a program.
        socket_dir: does not exist yet.
        is_abandoned: whether the run was abandoned.
    """
    program = socket_dir / "bin" / "fumehood"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(plan.program, "utf-8")
    for path in (socket_dir, program.parent, program):
        path.chmod(0o755)
    command = ("python3", f"{BOX_SOCKET_DIR}/bin/fumehood")
    files = Copied(b"", 0, 0)
    return verified(plan, socket_dir, files, (plan.answer,), is_abandoned, command)


def verified(
    plan: WorkspacePlan,
    socket_dir: Path,
    files: Copied,
    arguments: tuple[str, ...],
    is_abandoned: Callable[[], bool],
    command: tuple[str, ...] = _TESTS,
) -> Verdict:
    """Run the tests of a task in a new box, and return its verdict.

    Args:
        plan: of the task.
        socket_dir: a folder without sockets, to show at the place of those of a seat.
        files: of the workspace.
        arguments: of the command; paths to delete before the tests.
        is_abandoned: whether the run was abandoned.
        command: that writes the reward.

    Raises:
        InputError: the image cannot be started.
        InfraError: the engine does not answer, or the run was abandoned.
    """
    settings = plan.settings
    variables = {**plan.image.environment, **texts_of(settings.get("verifier_env"))}
    spec = BoxSpec(
        image=replace(
            plan.verifier,
            command=command,
            environment={"PYTHONSAFEPATH": "1", **variables},
        ),
        socket_dir=socket_dir,
        arguments=arguments,
        limits=plan.limits,
        labels=plan.labels,
        workspace=Workspace(archive=files.archive, terminals=plan.terminals),
    )
    box = plan.engine.start(spec)
    try:
        limit_bytes = plan.limits.tmp_bytes + _UNPACKED_BYTES * len(files.archive)
        ended, excess = wait_within_limit(
            box, "the verifier", limit_bytes, plan.verifier_timeout_s, is_abandoned
        )
        box.kill()
        folder = files_of(box.copy_out(REWARD_FOLDER, REWARD_BYTES_MAX))
    finally:
        output = output_of(box)
    printed = (output.stdout + output.stderr).decode("utf-8", "replace")[-OUTPUT_CHARS_MAX:]
    if ended is None or excess:
        return Verdict(problem=excess or "the verifier did not end in time", output=printed)
    rewards, problem = rewards_of(folder)
    return Verdict(rewards, problem, printed, files.files, files.left_out)


def output_of(box: WorkspaceBox) -> BoxOutput:
    """Remove a killed box and return its output, empty if the engine does not remove it in time.

    Many files of the agent delay that, so it is no failure of the infrastructure. The engine may
    still remove the box; otherwise the next command does.
    """
    try:
        return box.close()
    except InfraError:
        return BoxOutput(b"", b"", 0, 0)


def rewards_of(folder: Mapping[str, bytes]) -> tuple[dict[str, float], str]:
    """Return the rewards that a verifier wrote, and the problem if there are none.

    A program of the agent can be their author. ``reward.json`` precedes ``reward.txt``. Source:
    Harbor 0.25, verifier/verifier.py.
    """
    if "reward.json" in folder:
        try:
            values = json.loads(folder["reward.json"])
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or not values or not all(map(_is_reward, values.values())):
            return {}, f"reward.json is not an object of numbers up to {REWARD_MAX:g}"
        if len(values) > REWARDS_MAX or not all(map(_is_name, values)):
            return {}, (
                f"reward.json has more than {REWARDS_MAX} rewards, or a name that is no text of at "
                f"most {NAME_CHARS_MAX} characters"
            )
        return {name: float(value) for name, value in values.items()}, ""
    if "reward.txt" not in folder:
        return {}, "the verifier wrote no reward"
    try:
        reward = float(folder["reward.txt"])
    except ValueError:
        reward = math.nan
    if not _is_reward(reward):
        return {}, f"reward.txt is not a number up to {REWARD_MAX:g}"
    return {"reward": reward}, ""


def tests_of(plan: WorkspacePlan) -> bytes | None:
    """Return the tests as a tar; None if they are in the image of the verifier."""
    settings, content = plan.settings, io.BytesIO()
    if settings.get("verifier_folder") == "tests":
        return None
    if plan.program:
        evaluate = f"#!/bin/sh\nexec python3 /tests/verify.py {shlex.quote(plan.answer)}\n"
        return tar_of({"tests/test.sh": evaluate, "tests/verify.py": plan.program})
    folders = settings.get("tests")
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in folders if isinstance(folders, list) else ["tests"]:
            if (folder := Path(str(settings["folder"]), str(name))).is_dir():
                archive.add(folder, "tests")
    return content.getvalue()


def _deleted(box: WorkspaceBox, plan: WorkspacePlan) -> tuple[str, ...]:
    tops = plan.artifacts or (plan.image.working_dir,)
    paths = [path for path in box.deleted() if any(is_below(path, top) for top in tops)]
    if not plan.artifacts:
        paths = [path for path in paths if not is_loaded(path.removeprefix(tops[0]))]
    check_deleted(paths)
    return tuple(paths)


def _is_reward(value: object) -> bool:
    # Infinity and NaN are not, either.
    return isinstance(value, int | float) and abs(value) <= REWARD_MAX


def _is_name(name: str) -> bool:
    # Half of a surrogate pair cannot be stored.
    return len(name) <= NAME_CHARS_MAX and not any("\ud800" <= each <= "\udfff" for each in name)
