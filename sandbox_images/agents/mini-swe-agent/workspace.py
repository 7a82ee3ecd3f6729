"""An environment of mini-swe-agent whose shell is the tool `bash` of a workspace."""

import json
import subprocess
from typing import Any

from minisweagent.environments.local import LocalEnvironment
from seat import HELPER

TIMEOUT_S = 60


class Workspace(LocalEnvironment):
    """Runs each command of the agent in a subshell of the workspace."""

    def execute(self, action: dict, cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command; the task is complete when it prints the marker."""
        # In a subshell, as the agent tells its model: nothing persists except files.
        command = f"(\n{action.get('command', '')}\n)"
        arguments = {"command": command, "timeout_s": timeout or TIMEOUT_S}
        called = subprocess.run(
            [HELPER, "call", "bash", "-"],
            input=json.dumps(arguments),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        result = {"output": called.stdout, "exit_status": -1}
        if called.returncode == 0:
            result |= json.loads(called.stdout)
        # A command that reached its timeout has no exit status.
        output = {"output": result["output"], "returncode": result["exit_status"]}
        output["exception_info"] = "timeout" if result.get("timed_out") else ""
        self._check_finished(output)
        return output
