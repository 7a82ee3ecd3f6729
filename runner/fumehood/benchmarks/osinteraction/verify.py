"""Evaluates an answer in the box of a verifier, or in a workspace whose agent has ended.

Only the standard library, because the image of the task executes it. The benchmark assigns
``TASK``, and the orchestrator passes the answer as the only argument. Source: AgentBench
578c5e9, ``src/server/tasks/os_interaction/task.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TASK: dict[str, Any] = {}
PROGRAMS = {"bash": ["bash", "-c"], "python": ["python3", "-c"]}


def run(script: list[str], arguments: list[str]) -> tuple[int, str]:
    """Run a script of a language; return its exit status and standard output."""
    language, code = script
    # The name of a bash script is its first argument.
    name = ["--"] if language == "bash" and arguments else []
    command = [*PROGRAMS[language], code, *name, *arguments]
    # A process that continues would keep a pipe open.
    with tempfile.TemporaryFile(dir="/dev/shm") as printed:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=printed, check=False)
        printed.seek(0)
        return done.returncode, printed.read().decode("utf-8", "replace").replace("\0", "")


def is_right(task: dict[str, Any], answer: str) -> bool:
    """Return whether an answer, or the state of the machine, is right."""
    match = task["match"]
    if match:
        answer = answer.strip() if match.get("strip") else answer
        if "answer" in match:
            return bool(answer == match["answer"])
        return re.search(match["regex"], answer) is not None
    arguments = [answer]
    for script in task["checks"]:
        status, printed = run(script or task["example"], arguments)
        print(f"exit status {status}: {printed[:500]}")
        if status:
            return False
        arguments.append(printed)
    return True


def main() -> None:
    """Set up the machine if it is new, evaluate the answer, and write the reward."""
    if len(sys.argv) == 2:
        # In place of the shell of the agent, which the original's scripts see among the processes.
        own = ["bash", "-c", 'python3 "$0" "$1" inside; exit $?', *sys.argv]
        os.execvp(own[0], own)
    # Set for verifiers of other benchmarks only.
    os.environ.pop("PYTHONSAFEPATH", None)
    for script in TASK["init"]:
        run(script, [])
    # An agent that ends without an answer has this one.
    reward = int(is_right(TASK, sys.argv[1] or "None"))
    folder = Path("/logs/verifier")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reward.txt").write_text(str(reward))


if __name__ == "__main__":
    main()
