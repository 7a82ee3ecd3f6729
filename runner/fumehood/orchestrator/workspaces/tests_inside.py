"""Runs the tests of a task inside its workspace, as Harbor does by default.

Programs of the agent run beside the tests, and can replace everything that the tests use. So an
agent can forge the result. Source: Harbor 0.25, verifier/verifier.py.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from fumehood.core.errors import InfraError
from fumehood.engines.engine import LiveWorkspaceBox, WorkspaceBox
from fumehood.orchestrator.workspaces.artifacts import REWARD_FOLDER, copied, files_of
from fumehood.orchestrator.workspaces.plans import WorkspacePlan, texts_of
from fumehood.orchestrator.workspaces.verification import (
    OUTPUT_CHARS_MAX,
    REWARD_BYTES_MAX,
    rewards_of,
    tests_of,
)
from fumehood.scorers.verdict import Verdict

_POLL_MS = 200
"""Interval between two checks of whether the tests have ended."""
_OUTPUT = "test-stdout.txt"
_COMMAND = (
    'for collect in "$@"; do bash -c "$collect"; done; '
    f"rm -f -- {REWARD_FOLDER}/reward.txt {REWARD_FOLDER}/reward.json; "
    f"chmod +x /tests/test.sh; (/tests/test.sh) > {REWARD_FOLDER}/{_OUTPUT} 2>&1; "
    f"cd {REWARD_FOLDER} && tail -c {4 * OUTPUT_CHARS_MAX} {_OUTPUT} > {_OUTPUT}.end && "
    f"mv -f {_OUTPUT}.end {_OUTPUT}"
)
"""Deletes earlier rewards, as Harbor does. Keeps the end of the output, because a longer one than
the limit of the folder would cost the reward."""


def live(box: WorkspaceBox) -> LiveWorkspaceBox:
    """Return a box of a live engine, in which commands can run."""
    assert isinstance(box, LiveWorkspaceBox)
    return box


def verified_inside(
    box: LiveWorkspaceBox, plan: WorkspacePlan, is_abandoned: Callable[[], bool]
) -> Verdict:
    """Run the tests of a task in its running or paused workspace, stop it, and return the verdict.

    Args:
        box: the workspace.
        plan: of the task.
        is_abandoned: whether the run was abandoned.

    Raises:
        BadArtifacts: the folder of rewards cannot be read.
        TooLarge: it is too large.
        InfraError: the engine does not answer, or the run was abandoned.
    """
    box.resume()
    if box.wait(0) is not None:
        return Verdict(problem="the workspace ended before its tests", is_shared=True)
    box.unpack(copied((), None, tests_of(plan)).archive)
    collect = plan.settings.get("collect")
    commands = map(str, collect) if isinstance(collect, list) else ()
    status = box.execute(
        ("bash", "-c", _COMMAND, "tests", *commands), texts_of(plan.settings.get("verifier_env"))
    )
    deadline_s, problem = monotonic() + plan.verifier_timeout_s, ""
    while not problem and status() is None:
        if box.wait(_POLL_MS) is not None:
            problem = "the workspace ended during its tests"
        elif monotonic() > deadline_s:
            problem = "the tests did not end in time"
        if is_abandoned():
            raise InfraError("the run was stopped")
    box.kill()
    folder = files_of(box.copy_out(REWARD_FOLDER, REWARD_BYTES_MAX))
    printed = folder.get(_OUTPUT, b"").decode("utf-8", "replace")[-OUTPUT_CHARS_MAX:]
    rewards, missing = ({}, problem) if problem else rewards_of(folder)
    return Verdict(rewards, missing, printed, is_shared=True)
