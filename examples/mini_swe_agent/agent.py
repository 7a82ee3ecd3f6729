"""Runs mini-swe-agent in the workspace of a task, and submits its last message."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

HELPER = "/fumehood/bin/fumehood"
LAST_RUN = Path("/tmp/last_run.json")
# Programs that the agent starts must not find the packages, so PYTHONPATH is not set.
START = (
    "import runpy, sys; sys.path.insert(0, '/opt/agent/packages'); "
    "runpy.run_module('minisweagent.run.mini', run_name='__main__', alter_sys=True)"
)


def main() -> None:
    """Run the agent on the task, in the current folder."""
    task = subprocess.run([HELPER, "task"], capture_output=True, text=True, check=True).stdout
    with urlopen(os.environ["OPENAI_BASE_URL"] + "/models") as models:
        model = json.load(models)["data"][0]["id"]
    switches = ["--yolo", "--exit-immediately", "--cost-limit", "0"]
    words = ["--model", f"openai/{model}", "--task", task, "--output", str(LAST_RUN)]
    subprocess.run([sys.executable, "-c", START, *switches, *words], check=True)
    answer = json.loads(LAST_RUN.read_text())["info"]["submission"]
    subprocess.run([HELPER, "submit", answer.strip()], check=True)


main()
